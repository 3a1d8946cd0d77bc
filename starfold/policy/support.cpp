#include "starfold/policy/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "starfold/policy/bounds.h"
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

// How the squares of terms are summed: not at all, as they are, or as the root of their sum, which takes longer and
// never leaves the range of numbers.
enum class Squares { none, plain, root };

// The sums of every list of terms, by cell.
struct Sums {
  std::vector<Tensor> sizes;
  std::vector<Tensor> squares;
  Squares how = Squares::plain;
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
  const double ratio = sizes / (sums.how == Squares::root ? squares : std::sqrt(squares));
  return std::isfinite(sizes) && std::isfinite(ratio) ? ratio * ratio : nan;
}

// A program of sums over the records of a client, or the first of them.
class SumsProgram {
 public:
  SumsProgram(const SupportProgram& support, Squares how, const SizeValues& sizes,
              const Engine& engine, std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : how_(how),
        terms_(support.terms.size()),
        plan_(make_sums(support, how)),
        sizes_(sizes),
        engine_(std::make_shared<const Encoders>(plan_, sizes_), engine, most) {}

  Sums run(const Settings& settings) {
    Machine machine(plan_, sizes_, settings);
    while (machine.round() != nullptr)
      machine.absorb(engine_.encode(*machine.round(), machine.to_send()));
    Sums sums;
    sums.how = how_;
    for (std::size_t i = 0; i < terms_; ++i) {
      sums.sizes.push_back(machine.results().outputs.at(name("sizes", i)));
      if (how_ != Squares::none)
        sums.squares.push_back(machine.results().outputs.at(name("squares", i)));
    }
    return sums;
  }

 private:
  static std::shared_ptr<const Plan> make_sums(const SupportProgram& support, Squares how) {
    ir::Program program = support.program;
    for (std::size_t i = 0; i < support.terms.size(); ++i) {
      const policy::Terms& terms = support.terms[i];
      ir::Builder build(program, program.graph[terms.left].span);
      program.outputs.push_back({name("sizes", i), sum_of_sizes(build, terms), {}});
      if (how == Squares::none) continue;
      const bool root = how == Squares::root;
      const NodeId squares = root ? root_of_squares(build, terms) : sum_of_squares(build, terms);
      program.outputs.push_back({name("squares", i), squares, {}});
    }
    return std::make_shared<const Plan>(make_plan(program));
  }

  static std::string name(const char* what, std::size_t i) { return fmt::format("{} {}", what, i); }

  Squares how_;
  std::size_t terms_;
  std::shared_ptr<const Plan> plan_;
  SizeValues sizes_;
  Engine engine_;
};

// Where the values of each federated input lie: one look at all records.
policy::InputRanges look_at_inputs(const Plan& plan, const SizeValues& sizes,
                                   const Engine& engine) {
  ir::Program program;
  program.signature = plan.program.signature;
  program.sizes = plan.program.sizes;
  std::set<std::uint32_t> read;
  for (const Round* round : rounds_of(plan)) {
    for (const NodeId id : round->encoders) {
      if (plan.program.graph[id].kind == ir::Kind::input) read.insert(plan.program.graph[id].index);
    }
  }
  for (const std::uint32_t index : read) {
    const ir::Input& input = plan.program.inputs[index];
    ir::Node node;
    node.kind = ir::Kind::input;
    node.index = static_cast<std::uint32_t>(program.inputs.size());
    node.types = {input.type};
    const NodeId id = program.graph.add(std::move(node));
    program.inputs.push_back({input.name, input.type, id, ir::no_node, input.span});
    ir::Builder build(program, input.span);
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 0; axis < input.type.rank(); ++axis)
      axes.push_back(static_cast<std::int64_t>(axis));
    for (const char* end : {"min", "max"})
      program.outputs.push_back(
          {fmt::format("{} {}", end, input.name), build.call(end, {id}, axes), input.span});
  }
  const auto looks = std::make_shared<const Plan>(make_plan(program));
  Engine looking(std::make_shared<const Encoders>(looks, sizes), engine);
  Machine machine(looks, sizes, {});
  while (machine.round() != nullptr)
    machine.absorb(looking.encode(*machine.round(), machine.to_send()));
  policy::InputRanges ranges;
  for (const ir::Input& input : program.inputs) {
    const auto& found = machine.results().outputs;
    const Interval range{found.at("min " + input.name).item(),
                         found.at("max " + input.name).item()};
    ranges[input.name] = range.lo <= range.hi ? range : Interval();
  }
  return ranges;
}

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
  Impl(std::shared_ptr<const Plan> plan, SizeValues sizes, const Engine& engine, std::int64_t many)
      : plan_(std::move(plan)), sizes_(std::move(sizes)), many_(many), engine_(share(engine)) {}

  std::vector<ThinCell> thin(const Round& round, const std::map<NodeId, Tensor>& received,
                             const std::vector<MergeState>& sent, double least, std::size_t limit) {
    // A number that a client has computed from all of its records rests on them.
    const auto records = static_cast<double>(engine_.records());
    std::vector<ThinCell> whole;
    std::size_t per_client = 0;
    for (std::size_t i = 0; i < round.merges.size(); ++i) {
      if (!policy::is_per_client(plan_->program, round.merges[i])) continue;
      ++per_client;
      if (records > 0 && records < least && whole.size() < limit)
        whole.push_back({i, 0, 0, records, false, {}});
    }
    if (!whole.empty() || per_client == round.merges.size()) return whole;
    Checks& checks = checks_of(round);
    // Exact states are looked at as the numbers they stand for.
    std::vector<MergeState> states;
    for (std::size_t i = 0; i < sent.size(); ++i)
      states.push_back(plain_state(*round.merges[i].monoid, sent[i]));
    const Settings settings = given(received, states);
    if (first_ones_suffice(checks, settings, states, least)) return {};
    const auto sums_by = [&](std::optional<SumsProgram>& program, Squares how) {
      if (!program) program.emplace(checks.support, how, sizes_, engine_);
      return program->run(settings);
    };
    Sums sums = sums_by(checks.plain, Squares::plain);
    if (!all_sound(sums)) sums = sums_by(checks.scaled, Squares::root);
    return find_thin(round, checks.support.bases, sums, states, least, limit);
  }

 private:
  struct Checks {
    SupportProgram support;
    std::optional<SumsProgram> first_ones;
    std::optional<SumsProgram> plain;
    std::optional<SumsProgram> scaled;
    int without = 0;  // so many more rounds do without the first ones, which did not suffice
  };

  // An engine of no program that keeps the records.
  Engine share(const Engine& engine) const {
    return Engine(std::make_shared<const Encoders>(plan_, sizes_), engine);
  }

  Checks& checks_of(const Round& round) {
    const auto [at, is_new] = checks_.try_emplace(round.number);
    if (is_new) {
      at->second.support = policy::derive_support(*plan_, round);
    }
    return at->second;
  }

  // Whether a few records are enough to be sure of all numbers: (sum |e|)^2 / sum e^2 is at least sum |e| / max |e|, the sum
  // over some records is at most that over all, and how large a term can be is known from the ranges of what it is made of.
  bool first_ones_suffice(Checks& checks, const Settings& settings,
                          const std::vector<MergeState>& states, double least) {
    const std::int64_t records = engine_.records();
    if (records < many_ || checks.without-- > 0) return false;
    checks.without = 0;
    if (!inputs_) inputs_ = look_at_inputs(*plan_, sizes_, engine_);
    policy::InputRanges ranges = *inputs_;
    for (const auto& [name, value] : settings.shared) ranges[name] = policy::range_of(value);
    const std::vector<double> largest = largest_terms(checks.support, sizes_, ranges);
    const auto known = [](double x) { return std::isfinite(x); };
    bool sure = std::all_of(largest.begin(), largest.end(), known);
    for (const MergeState& state : states) {
      for (const Tensor& part : state)
        sure = sure && std::all_of(part.data.begin(), part.data.end(), known);
    }
    if (sure) {
      const std::int64_t most = std::clamp(records / 4, many_ / 4, many_);
      if (!checks.first_ones)
        checks.first_ones.emplace(checks.support, Squares::none, sizes_, engine_, most);
      const Sums sums = checks.first_ones->run(settings);
      for (std::size_t i = 0; i < largest.size(); ++i) {
        for (const double size : sums.sizes[i].data)
          sure = sure && std::isfinite(size) && size >= least * (1 + rounding) * largest[i];
      }
    }
    if (!sure) checks.without = 7;
    return sure;
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
      const double neutral = plain_row(*round.merges[basis.merge].monoid).parts[basis.part].zero;
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
  std::int64_t many_;
  Engine engine_;
  std::map<int, Checks> checks_;
  std::optional<policy::InputRanges> inputs_;
};

Support::Support(std::shared_ptr<const Plan> plan, SizeValues sizes, const Engine& engine,
                 std::int64_t many)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(sizes), engine, many)) {}
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
