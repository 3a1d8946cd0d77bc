#include "starfold/support/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "starfold/merge/exact.h"
#include "starfold/runtime/apply.h"
#include "starfold/support/sums.h"

namespace starfold {
namespace {

using ir::NodeId;
using support::Basis;
using support::Squares;
using support::Summation;
using support::Sums;
using support::SupportProgram;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Sums round, so equal weights of `least` records may seem to be a little fewer.
constexpr double rounding = 1e-9;
// The same for bounds, which need not be close.
constexpr double slack = 1e-6;
constexpr double enough = std::numeric_limits<double>::infinity();

bool finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

bool any_of(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

// Exact states are looked at as the numbers they stand for. Their sums of products hold what no double can, and of which sums in
// doubles know nothing: it is no number here.
MergeState seen_as_plain(const Monoid& row, const MergeState& sent) {
  MergeState plain = plain_state(row, sent);
  const std::size_t words = exact::products.words();
  if (row.plain == nullptr || row.parts.back().words != words) return plain;
  constexpr double least = 1e-280;
  for (std::size_t cell = 0; cell < plain.back().data.size(); ++cell) {
    const std::vector<wide::Word> sum = integer(sent.back(), cell, words);
    const bool any = std::any_of(sum.begin(), sum.end(), [](wide::Word word) { return word != 0; });
    if (any && std::abs(exact::rounded(sum, exact::products)) < least)
      plain.back().data[cell] = nan;
  }
  return plain;
}

}  // namespace

std::string unsupported(const Plan& plan) {
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      const std::string why = support::underivable(plan, merge);
      if (!why.empty()) return why;
    }
  }
  return {};
}

class Support::Impl {
 public:
  Impl(std::shared_ptr<const Plan> plan, SizeValues sizes, const Engine& engine, std::int64_t many)
      : plan_(std::move(plan)), sizes_(std::move(sizes)), many_(many), engine_(share(engine)) {}

  std::vector<ThinCell> thin(const Round& round, const std::map<NodeId, Tensor>& received,
                             const std::vector<MergeState>& sent, double least, std::size_t limit,
                             Scale scale) {
    // A number that a client has computed from all of its records rests on them.
    const auto records = static_cast<double>(engine_.records());
    std::vector<ThinCell> whole;
    std::size_t per_client = 0;
    for (std::size_t i = 0; i < round.merges.size(); ++i) {
      if (!support::is_per_client(plan_->program, round.merges[i])) continue;
      ++per_client;
      if (records > 0 && records < least && whole.size() < limit)
        whole.push_back({i, 0, 0, records, false, {}});
    }
    if (!whole.empty() || per_client == round.merges.size()) return whole;
    Checks& checks = checks_of(round);
    std::vector<MergeState> states;
    for (std::size_t i = 0; i < sent.size(); ++i)
      states.push_back(seen_as_plain(*round.merges[i].monoid, sent[i]));
    const Settings settings = given(received, states);
    const std::vector<bool> open = unsure(checks, round, settings, states, least, scale);
    if (!any_of(open)) return {};
    const auto sum = [&](Summation& summation) {
      return summation.run(checks.support, open, settings, sizes_, engine_);
    };
    Sums sums = sum(checks.plain);
    if (!sums.sound(open)) sums = sum(checks.scaled);
    return find_thin(round, checks.support.bases, sums, open, states, least, limit);
  }

 private:
  // A look at sizes alone, at some records or all. Lists of terms that it could not decide on do without it for a while.
  struct Look {
    explicit Look(std::int64_t most) : sums(Squares::none, most) {}
    Summation sums;
    std::vector<int> without = {};  // by list: so many more rounds
  };
  struct Checks {
    SupportProgram support;
    std::vector<Look> looks;
    Summation plain{Squares::plain};
    Summation scaled{Squares::root};
  };

  // An engine of no program that keeps the records.
  Engine share(const Engine& engine) const {
    return Engine(std::make_shared<const Encoders>(plan_, sizes_), engine);
  }

  Checks& checks_of(const Round& round) {
    const auto [at, is_new] = checks_.try_emplace(round.number);
    if (is_new) {
      at->second.support = support::derive_support(*plan_, round);
      const std::int64_t few = std::clamp(engine_.records() / 4, many_ / 4, many_);
      at->second.looks.emplace_back(few);
      at->second.looks.emplace_back(std::numeric_limits<std::int64_t>::max());
    }
    return at->second;
  }

  // The lists of terms of which it takes their squares to tell whether numbers rest on enough records. The others need less:
  // (sum |e|)^2 / sum e^2 is at least sum |e| / max |e|; the sum over some records is at most that over all, and at least what
  // the sum itself comes to; how large a term can be is known from the ranges of what it is made of.
  std::vector<bool> unsure(Checks& checks, const Round& round, const Settings& settings,
                           const std::vector<MergeState>& states, double least, Scale scale) {
    std::vector<bool> open(checks.support.terms.size(), true);
    bool known = engine_.records() >= many_;
    for (const MergeState& state : states) {
      for (const Tensor& part : state) known = known && finite(part.data);
    }
    if (!known) return open;
    if (!inputs_) inputs_ = support::look_at_inputs(*plan_, sizes_, engine_);
    support::InputBoxes boxes = *inputs_;
    for (const auto& [name, value] : settings.shared) boxes[name] = support::box_of(value);
    const std::vector<std::vector<double>> largest = largest_terms(checks.support, sizes_, boxes);
    const auto close = [&](std::size_t list, const Tensor& sums) {
      const std::vector<double>& most = largest[list];
      bool sure = most.size() == 1 || most.size() == sums.data.size();
      for (std::size_t cell = 0; cell < sums.data.size(); ++cell) {
        const double size = std::abs(sums.data[cell]);
        sure = sure && std::isfinite(size) &&
               size >= least * (1 + slack) * most[most.size() == 1 ? 0 : cell];
      }
      if (sure) open[list] = false;
    };
    for (const Basis& basis : checks.support.bases) {
      const bool added =
          scale == Scale::plain && &plain_row(*round.merges[basis.merge].monoid) == &monoids::sum;
      if (added && basis.plain) close(basis.terms, states[basis.merge][basis.part]);
    }
    for (Look& look : checks.looks) {
      std::vector<bool> lists(open.size());
      look.without.resize(open.size());
      for (std::size_t i = 0; i < open.size(); ++i)
        lists[i] = open[i] && finite(largest[i]) && look.without[i]-- <= 0;
      if (!any_of(lists)) continue;
      const Sums sums = look.sums.run(checks.support, lists, settings, sizes_, engine_);
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (!lists[i]) continue;
        close(i, sums.sizes[i]);
        look.without[i] = open[i] ? 7 : 0;
      }
    }
    return open;
  }

  static Settings given(const std::map<NodeId, Tensor>& received,
                        const std::vector<MergeState>& states) {
    Settings settings;
    for (const auto& [id, value] : received)
      settings.shared.emplace(support::received_name(id), value);
    for (std::size_t merge = 0; merge < states.size(); ++merge) {
      for (std::size_t part = 0; part < states[merge].size(); ++part)
        settings.shared.emplace(support::state_name(merge, part), states[merge][part]);
    }
    return settings;
  }

  // One finding for each number, the simplest.
  static std::vector<ThinCell> find_thin(const Round& round, const std::vector<Basis>& bases,
                                         const Sums& sums, const std::vector<bool>& open,
                                         const std::vector<MergeState>& states, double least,
                                         std::size_t limit) {
    using Place = std::tuple<std::size_t, std::size_t, std::size_t>;
    std::vector<ThinCell> found;
    std::set<Place> told;
    std::map<Place, int> turns;  // the first in which a record has a term
    for (const Basis& basis : bases) {
      const Tensor& part = states[basis.merge][basis.part];
      const double neutral = plain_row(*round.merges[basis.merge].monoid).parts[basis.part].zero;
      for (std::size_t cell = 0; cell < part.data.size(); ++cell) {
        const Place place{basis.merge, basis.part, cell};
        double number = open[basis.terms] ? sums.effective(basis.terms, cell) : enough;
        const bool missed = basis.rest.always && number == 0 && part.data[cell] != neutral;
        // A nan tells that a record has one.
        if (missed || std::isnan(part.data[cell])) number = nan;
        const auto turn = turns.find(place);
        // Exact states also keep what later turns speak of.
        const bool gone = round.merges[basis.merge].monoid->plain == nullptr;
        if (gone && turn != turns.end() && turn->second < basis.rest.turn) continue;
        if (basis.plain && number != 0) turns.emplace(place, basis.rest.turn);
        if (number == 0 || number >= least * (1 - rounding)) continue;
        if (found.size() >= limit || !told.insert(place).second) continue;
        found.push_back({basis.merge, basis.part, static_cast<std::int64_t>(cell), number,
                         basis.left_out, basis.conditions});
      }
    }
    return found;
  }

  std::shared_ptr<const Plan> plan_;
  SizeValues sizes_;
  std::int64_t many_;
  Engine engine_;
  std::map<int, Checks> checks_;
  std::optional<support::InputBoxes> inputs_;
};

Support::Support(std::shared_ptr<const Plan> plan, SizeValues sizes, const Engine& engine,
                 std::int64_t many)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(sizes), engine, many)) {}
Support::~Support() = default;
Support::Support(Support&&) noexcept = default;
Support& Support::operator=(Support&&) noexcept = default;

std::vector<ThinCell> Support::thin(const Round& round, const std::map<NodeId, Tensor>& received,
                                    const std::vector<MergeState>& states, double least,
                                    std::size_t limit, Scale scale) {
  return impl_->thin(round, received, states, least, limit, scale);
}

// ---- for people ----------------------------------------------------------------------------------

namespace {

// Where a number stands in its part: nothing for a single one, else its one-based place along each axis.
std::string place_of(const Shape& shape, std::int64_t cell) {
  if (shape.empty()) return "its value";
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    place[axis] = cell % shape[axis] + 1;
    cell /= shape[axis];
  }
  return fmt::format("its number [{}]", fmt::join(place, ", "));
}

}  // namespace

std::string describe(const Plan& plan, const Round& round, const SizeValues& sizes,
                     const SourceMap& sources, const ThinCell& cell, double least) {
  const Merge& merge = round.merges[cell.merge];
  const ir::Node& fold = plan.program.graph[merge.fold];
  const std::vector<Shape> shapes =
      state_shapes(plain_row(*merge.monoid), cell_shape(fold.type(), sizes));
  const Source& source = sources[fold.span.file];
  std::string text =
      fmt::format("{}:{}: `{}`: {}", source.name(), source.position(fold.span.begin).line,
                  describe_fold(plan, merge.fold), place_of(shapes[cell.part], cell.cell));
  if (shapes.size() > 1)
    text += fmt::format(" among the {}", plain_row(*merge.monoid).parts[cell.part].name);
  std::string records = fmt::format("effectively {:.3g} record{}", cell.effective,
                                    std::abs(cell.effective - 1) < 5e-3 ? "" : "s");
  if (std::isnan(cell.effective)) records = "no number of records that can be told";
  std::vector<std::string> conditions;
  for (const NodeId id : cell.conditions)
    conditions.push_back("`" + ir::print_expr(plan.program, id, 3) + "`");
  const std::string by = conditions.empty() ? std::string("a condition")
                                            : fmt::format("{}", fmt::join(conditions, " and "));
  if (cell.left_out) {
    text += fmt::format(": {} leave{} out {}", by, conditions.size() > 1 ? "" : "s", records);
  } else if (!conditions.empty()) {
    text += fmt::format(": {} choose{} {}", by, conditions.size() > 1 ? "" : "s", records);
  } else {
    text += " rests on " + records;
  }
  return fmt::format("{}, fewer than {:g}", text, least);
}

}  // namespace starfold
