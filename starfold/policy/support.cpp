#include "starfold/policy/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <set>

#include "starfold/policy/derive.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/machine.h"

namespace starfold {
namespace {

using ir::NodeId;
using policy::Basis;
using policy::SupportProgram;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Sums round, so equal weights of `least` records may seem to be a little fewer.
constexpr double rounding = 1e-9;

// The two sums of every list of terms, by cell; `roots` when the second is the root of the squares.
struct Sums {
  std::vector<Tensor> sizes;
  std::vector<Tensor> squares;
  bool roots = false;
};

// Whether a sum of squares is what it should be: small ones may have lost terms, large ones may have overflowed.
bool is_sound(double sizes, double squares) {
  return sizes == 0 || !std::isfinite(sizes) || (squares > 1e-280 && squares < 1e300);
}

// The effective number of records: 0 for none, nan where the sums tell nothing.
double effective(const Sums& sums, std::size_t terms, std::size_t cell) {
  const double sizes = sums.sizes[terms].data[cell];
  if (sizes == 0) return 0;
  const double squares = sums.squares[terms].data[cell];
  const double ratio = sizes / (sums.roots ? squares : std::sqrt(squares));
  return std::isfinite(sizes) && std::isfinite(ratio) ? ratio * ratio : nan;
}

// A program of sums over the records of a client.
class SumsProgram {
 public:
  SumsProgram(const SupportProgram& support, bool roots, const SizeValues& sizes,
              const Engine& engine)
      : roots_(roots),
        terms_(support.terms.size()),
        plan_(make_sums(support, roots)),
        sizes_(sizes),
        engine_(std::make_shared<const Encoders>(plan_, sizes_), engine) {}

  Sums run(const Settings& settings) {
    Machine machine(plan_, sizes_, settings);
    while (machine.round() != nullptr)
      machine.absorb(engine_.encode(*machine.round(), machine.to_send()));
    Sums sums;
    sums.roots = roots_;
    for (std::size_t i = 0; i < terms_; ++i) {
      sums.sizes.push_back(machine.results().outputs.at(name("sizes", i)));
      sums.squares.push_back(machine.results().outputs.at(name("squares", i)));
    }
    return sums;
  }

 private:
  static std::shared_ptr<const Plan> make_sums(const SupportProgram& support, bool roots) {
    ir::Program program = support.program;
    for (std::size_t i = 0; i < support.terms.size(); ++i) {
      const policy::Terms& terms = support.terms[i];
      ir::Builder build(program, program.graph[terms.left].span);
      const NodeId squares = roots ? root_of_squares(build, terms) : sum_of_squares(build, terms);
      program.outputs.push_back({name("sizes", i), sum_of_sizes(build, terms), {}});
      program.outputs.push_back({name("squares", i), squares, {}});
    }
    return std::make_shared<const Plan>(make_plan(program));
  }

  static std::string name(const char* what, std::size_t i) { return fmt::format("{} {}", what, i); }

  bool roots_;
  std::size_t terms_;
  std::shared_ptr<const Plan> plan_;
  SizeValues sizes_;
  Engine engine_;
};

bool all_sound(const Sums& sums) {
  for (std::size_t i = 0; i < sums.sizes.size(); ++i) {
    for (std::size_t cell = 0; cell < sums.sizes[i].data.size(); ++cell) {
      if (!is_sound(sums.sizes[i].data[cell], sums.squares[i].data[cell])) return false;
    }
  }
  return true;
}

}  // namespace

std::string unsupported(const Plan& plan) {
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      const std::string why = policy::underivable(plan, merge);
      if (!why.empty()) return why;
    }
  }
  return {};
}

class Support::Impl {
 public:
  Impl(std::shared_ptr<const Plan> plan, SizeValues sizes, const Engine& engine)
      : plan_(std::move(plan)), sizes_(std::move(sizes)), engine_(share(engine)) {}

  std::vector<ThinCell> thin(const Round& round, const std::map<NodeId, Tensor>& received,
                             const std::vector<MergeState>& states, double least,
                             std::size_t limit) {
    Checks& checks = checks_of(round);
    const Settings settings = given(received, states);
    Sums sums = checks.plain->run(settings);
    if (!all_sound(sums)) {
      if (!checks.exact) checks.exact.emplace(checks.support, true, sizes_, engine_);
      sums = checks.exact->run(settings);
    }
    return find_thin(round, checks.support.bases, sums, states, least, limit);
  }

 private:
  struct Checks {
    SupportProgram support;
    std::optional<SumsProgram> plain;
    std::optional<SumsProgram> exact;
  };

  // An engine of no program that keeps the records.
  Engine share(const Engine& engine) const {
    return Engine(std::make_shared<const Encoders>(plan_, sizes_), engine);
  }

  Checks& checks_of(const Round& round) {
    const auto [at, is_new] = checks_.try_emplace(round.number);
    if (is_new) {
      at->second.support = policy::derive_support(*plan_, round);
      at->second.plain.emplace(at->second.support, false, sizes_, engine_);
    }
    return at->second;
  }

  static Settings given(const std::map<NodeId, Tensor>& received,
                        const std::vector<MergeState>& states) {
    Settings settings;
    for (const auto& [id, value] : received)
      settings.shared.emplace(policy::received_name(id), value);
    for (std::size_t merge = 0; merge < states.size(); ++merge) {
      for (std::size_t part = 0; part < states[merge].size(); ++part)
        settings.shared.emplace(policy::state_name(merge, part), states[merge][part]);
    }
    return settings;
  }

  // One finding for each number, the simplest.
  static std::vector<ThinCell> find_thin(const Round& round, const std::vector<Basis>& bases,
                                         const Sums& sums, const std::vector<MergeState>& states,
                                         double least, std::size_t limit) {
    using Place = std::tuple<std::size_t, std::size_t, std::size_t>;
    std::vector<ThinCell> found;
    std::set<Place> told;
    std::map<Place, int> turns;  // the first in which a record has a term
    for (const Basis& basis : bases) {
      const Tensor& part = states[basis.merge][basis.part];
      const double neutral = round.merges[basis.merge].monoid->parts[basis.part].zero;
      for (std::size_t cell = 0; cell < part.data.size(); ++cell) {
        const Place place{basis.merge, basis.part, cell};
        double number = effective(sums, basis.terms, cell);
        const bool missed = basis.rest.always && number == 0 && part.data[cell] != neutral;
        // A nan tells that a record has one.
        if (missed || std::isnan(part.data[cell])) number = nan;
        const auto turn = turns.find(place);
        if (turn != turns.end() && turn->second < basis.rest.turn) continue;
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
  Engine engine_;
  std::map<int, Checks> checks_;
};

Support::Support(std::shared_ptr<const Plan> plan, SizeValues sizes, const Engine& engine)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(sizes), engine)) {}
Support::~Support() = default;
Support::Support(Support&&) noexcept = default;
Support& Support::operator=(Support&&) noexcept = default;

std::vector<ThinCell> Support::thin(const Round& round, const std::map<NodeId, Tensor>& received,
                                    const std::vector<MergeState>& states, double least,
                                    std::size_t limit) {
  return impl_->thin(round, received, states, least, limit);
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
  const std::vector<Shape> shapes = state_shapes(*merge.monoid, cell_shape(fold.type(), sizes));
  const Source& source = sources[fold.span.file];
  std::string text =
      fmt::format("{}:{}: `{}`: {}", source.name(), source.position(fold.span.begin).line,
                  describe_fold(plan, merge.fold), place_of(shapes[cell.part], cell.cell));
  if (shapes.size() > 1) text += fmt::format(" among the {}", merge.monoid->parts[cell.part].name);
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
