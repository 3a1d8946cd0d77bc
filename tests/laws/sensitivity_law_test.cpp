// Laws of private releases: no record changes a release by more than the program proves, and folds that become sums say
// what they said.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "starfold/base/error.h"
#include "starfold/privacy/sensitivity.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/machine.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using privacy::Neighbours;
using privacy::Sensitivities;
using privacy::Unit;

std::shared_ptr<const CompiledProgram> planned_in_sums(const Case& c, bool optimize) {
  ProgramOptions options;
  options.signature = c.options.signature;
  options.planning = {optimize, true};
  return compile_program(c.program.text, options);
}

// One record of every record set: ordinary ones, and ones far outside what is ordinary.
Client random_record(Random& random, const Case& c) {
  const std::vector<double> scales = {0, 1, 1, -1, 3, -10, 1e3, -1e6};
  const double scale = random.pick(scales);
  Client client{"one", {}};
  for (const InputSpec& input : c.program.inputs) {
    if (!input.type.federated()) continue;
    Shape shape;
    for (const Dim& dim : input.type.dims)
      shape.push_back(dim.star ? 1 : *dim.size.evaluate(c.program.sizes));
    Tensor record = random_tensor(random, input, shape, false);
    const double own = random.chance(70) ? scale : random.pick(scales);
    for (double& x : record.data) x *= input.values == InputSpec::Values::label ? 1 : own;
    client.arrays[input.name] = std::move(record);
  }
  return client;
}

// What a round's message holds when a client has just these records; nullopt when they are refused.
std::optional<std::vector<MergeState>> encoded(const std::shared_ptr<const Encoders>& encoders,
                                               const Client& client, const Round& round,
                                               const std::map<ir::NodeId, Tensor>& received) {
  try {
    return Engine(encoders, client).encode(round, received);
  } catch (const RunError&) {
    return std::nullopt;
  }
}

struct Change {
  double l1 = 0;
  double squares = 0;
  double linf = 0;

  void add(double x) {
    l1 += std::fabs(x);
    squares += x * x;
    linf = std::max(linf, std::fabs(x));
  }
  void add(const Change& other) {
    l1 += other.l1;
    squares += other.squares;
    linf = std::max(linf, other.linf);
  }
};

// How far two states of a merge lie apart; nullopt where one of them is not a number. Null is the state of no record.
std::optional<Change> change(const MergeState& a, const MergeState* b) {
  Change total;
  for (std::size_t i = 0; i < a[0].data.size(); ++i) {
    const double x = a[0].data[i] - (b != nullptr ? (*b)[0].data[i] : 0);
    if (std::isnan(x)) return std::nullopt;
    total.add(x);
  }
  return total;
}

Verdict within(const Change& found, const Norms& proven, const SizeValues& sizes,
               const std::string& of) {
  const std::pair<double, const Bound&> pairs[] = {
      {found.l1, proven.l1}, {std::sqrt(found.squares), proven.l2}, {found.linf, proven.linf}};
  const char* names[] = {"L1", "L2", "Linf"};
  for (std::size_t i = 0; i < 3; ++i) {
    const double most = pairs[i].second.evaluate(sizes).value();
    if (pairs[i].first <= most) continue;
    return fmt::format("one record changes {} by {} in {}, but {} is said to be the most", of,
                       pairs[i].first, names[i], most);
  }
  return std::nullopt;
}

struct Counts {
  int merges = 0;
  int bounded = 0;
};

// All that one pair of neighbours changes in a round.
Verdict check_pair(const Plan& plan, const Round& round, const privacy::RoundSensitivity& proven,
                   const std::vector<MergeState>& a, const std::vector<MergeState>* b,
                   const SizeValues& sizes) {
  Change all;
  bool every = true;
  for (std::size_t i = 0; i < round.merges.size(); ++i) {
    if (proven.merges[i].unbounded) {
      every = false;
      continue;
    }
    const std::optional<Change> own = change(a[i], b != nullptr ? &(*b)[i] : nullptr);
    if (!own) {
      every = false;
      continue;
    }
    const std::string name = "`" + describe_fold(plan, round.merges[i].fold) + "`";
    if (const Verdict broken = within(*own, proven.merges[i].change, sizes, name)) return broken;
    all.add(*own);
  }
  return every ? within(all, proven.change, sizes, "a round") : std::nullopt;
}

Verdict never_too_small(const Case& c, Counts& counts) {
  Random random = c.choices();
  const auto program = planned_in_sums(c, random.chance(70));
  if (!program->plan) return Verdict::nothing();
  const std::shared_ptr<const Plan> plan = program->plan;
  privacy::Known known{c.program.sizes, c.federation.settings.shared};
  known = privacy::with_defaults(plan->program, known);
  const Sensitivities added =
      privacy::sensitivities(*plan, Unit::record, Neighbours::add_remove, known);
  const Sensitivities replaced =
      privacy::sensitivities(*plan, Unit::record, Neighbours::replace, known);
  // Bounds with sizes in them hold for these sizes too.
  const Sensitivities symbolic =
      privacy::sensitivities(*plan, Unit::record, Neighbours::add_remove, {{}, known.inputs});
  const auto encoders = std::make_shared<const Encoders>(plan, c.program.sizes);
  const std::vector<const Round*> rounds = rounds_of(*plan);
  Machine machine(plan, c.program.sizes, c.federation.settings);
  for (int seen = 0; machine.round() != nullptr && seen < 4; ++seen) {
    const Round& round = *machine.round();
    const auto at =
        static_cast<std::size_t>(std::find(rounds.begin(), rounds.end(), &round) - rounds.begin());
    for (const privacy::MergeSensitivity& merge : added.rounds[at].merges) {
      ++counts.merges;
      counts.bounded += merge.unbounded ? 0 : 1;
    }
    const auto received = machine.to_send();
    std::vector<std::vector<MergeState>> states;
    for (int i = 0; i < 12; ++i) {
      if (auto state = encoded(encoders, random_record(random, c), round, received))
        states.push_back(std::move(*state));
    }
    for (const auto& state : states) {
      for (const Sensitivities* proven : {&added, &symbolic}) {
        if (const Verdict broken =
                check_pair(*plan, round, proven->rounds[at], state, nullptr, c.program.sizes))
          return broken;
      }
      for (const auto& other : states) {
        if (const Verdict broken =
                check_pair(*plan, round, replaced.rounds[at], state, &other, c.program.sizes))
          return broken;
      }
    }
    std::vector<MergeState> merged;
    for (const Merge& merge : round.merges)
      merged.push_back(zero(*merge.monoid, machine.fold_shape(merge)));
    for (const Client& client : c.federation.clients) {
      const auto own = encoded(encoders, client, round, received);
      if (!own) return std::nullopt;
      for (std::size_t i = 0; i < merged.size(); ++i)
        round.merges[i].monoid->merge(merged[i], (*own)[i]);
    }
    try {
      machine.absorb(merged);
    } catch (const RunError&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void check_sensitivity(const std::string& name, const GeneratorOptions& options, int programs,
                       double least_share) {
  Counts counts;
  check_law(name, options, programs, [&](const Case& c) -> Verdict {
    try {
      return never_too_small(c, counts);
    } catch (const RunError&) {
      return Verdict::nothing();  // of the program, not of its bounds
    }
  });
  EXPECT_GE(counts.bounded, least_share * counts.merges)
      << counts.bounded << " of " << counts.merges;
}

TEST(Laws, SensitivityIsNeverTooSmall) {
  GeneratorOptions options;
  options.bounded = true;
  check_sensitivity("Laws.SensitivityIsNeverTooSmall", options, 1500, 0.4);
}

// Most has no bound here, and must not be said to have one.
TEST(Laws, SensitivityOfAnyProgram) {
  check_sensitivity("Laws.SensitivityOfAnyProgram", {}, 500, 0.02);
}

TEST(Laws, SensitivityOfGradients) {
  GeneratorOptions options;
  options.bounded = true;
  options.derivatives = true;
  check_sensitivity("Laws.SensitivityOfGradients", options, 500, 0.2);
}

// --- every row

// What each client-local row is tried on: a : [*, 3], b : [*] and m : [*, 2, 3] are bounded, l : [*] holds labels.
const std::multimap<std::string, std::string> kRowExpressions = {
    {"concat", "concat[2](a, [1, 2], b[:, new])"},
    {"concat", "concat[2](ones(1), a)"},
    {"reshape", "reshape(m, 6)"},
    {"[:]", "a[:, 2:3]"},
    {"[:]", "m[:, 2, :]"},
    {"[:]", "a[:, new, :] * m"},
    {"[,]", "[b, 2 * b]"},
    {"[e]", "[[1, 2], [3, -4], [0, 1]][l]"},
    {"outer", "outer(a, a)"},
    {"outer", "outer(a, [1, -2])"},
    {"where", "where(b > 1, b, -2)"},
    {"where", "where(a[:, new, :] > 0, a[:, new, :], m)"},
    {"where", "where(b[:, new] > 1, a, [0, 1, 2])"},
    {"clip", "clip(a, -0.5, [0.25, 1, 1.5])"},
    {"clip", "clip(a, 1, 0.5)"},
    {"clip_norm", "clip_norm(m, 0.7)"},
    {"clip_norm", "clip_norm(a, 0)"},
    {"one_hot", "one_hot(l, 3)"},
    {"softmax", "softmax[2](m)"},
    {"log_softmax", "log_softmax[2](a)"},
    {"stop_gradient", "stop_gradient(a)"},
    {"zeros_like", "zeros_like(m)"},
    {"ones_like", "ones_like(a)"},
    {"permute", "permute[1, 3, 2](m)"},
    {"@", "a @ [[1, 2], [3, -4], [0, 1]]"},
    {"@", "a @ [1, -2, 1]"},
    {"@", "[[1, 2], [3, -4]] @ m"},
    {"@", "m @ a[:, :, new]"},
    {"@", "m @ permute[1, 3, 2](m)"},
    {"@", "a @ eye(3)"},
    {"quantile", "quantile[2](a, 0.3)"},
    {"cov", "cov[1]([[1, 2], [3, 5]]) * b[:, new, new]"},
    {"records", "ones_like(b)"},
    {"*", "b * b"},
    {"*", "a * a"},
    {"*", "(a - 1) * (a - 1)"},
    {"*", "b * (2 - b)"},
    {"*", "(1 - a) * a"},
    {"*", "sigmoid(y) * (1 - sigmoid(y))"},
    {"^", "a ^ 3"},
    {"^", "(a - 3) ^ 2"},
    {"^", "(0 - b) ^ 5"},
};

std::vector<std::string> row_expressions(const Op& op) {
  std::vector<std::string> texts;
  const auto [begin, end] = kRowExpressions.equal_range(op.name);
  for (auto at = begin; at != end; ++at) texts.push_back(at->second);
  const bool infix = op.notation == Notation::infix;
  if (op.family == Family::unary) {
    for (const char* operand : {"a", "b", "m"})
      texts.push_back(op.notation == Notation::prefix ? fmt::format("{} {}", op.name, operand)
                                                      : fmt::format("{}({})", op.name, operand));
  } else if (op.family == Family::binary || op.family == Family::comparison) {
    for (const auto& [left, right] :
         std::vector<std::pair<const char*, const char*>>{{"a", "b[:, new]"},
                                                          {"b", "2"},
                                                          {"a", "m[:, 1, :]"},
                                                          {"m", "a[:, new, :]"},
                                                          {"b", "3"},
                                                          {"[1, 2, 0.5]", "a"}})
      texts.push_back(infix ? fmt::format("{} {} {}", left, op.name, right)
                            : fmt::format("{}({}, {})", op.name, left, right));
  } else if (op.family == Family::aggregation && texts.empty()) {
    for (const char* fold : {"[2](a)", "[3](m)", "[2, 3](m)"}) texts.push_back(op.name + fold);
  }
  return texts;
}

Case row_case(const std::string& expression, std::uint64_t seed) {
  Case c;
  c.seed = seed;
  c.program.text.name = "row.fold";
  c.program.text.text =
      "input x : [*, 3]\ninput y : [*]\ninput z : [*, 2, 3]\ninput l : [*]\n"
      "let a = clip(x, -1, [0.5, 2, 0])\nlet b = clip(y, 0.5, 3)\nlet m = clip(z, -1, 1)\n"
      "output s = sum[*](" +
      expression + ")\n";
  const auto star = [](std::vector<Size> sizes) {
    return with_axis(Type::shared(std::move(sizes)), 0, Dim::record());
  };
  using Values = InputSpec::Values;
  c.program.inputs = {{"x", star({3}), Values::continuous, false, {}},
                      {"y", star({}), Values::continuous, false, {}},
                      {"z", star({2, 3}), Values::continuous, false, {}},
                      {"l", star({}), Values::label, false, {}}};
  return c;
}

// Sums what a row makes of bounded records, whatever its shape.
TEST(Laws, SensitivityOfEveryRow) {
  Counts counts;
  for (const auto& op : standard_signature().ops()) {
    if (op->family == Family::shared_only || op->family == Family::differentiation) continue;
    const std::vector<std::string> texts = row_expressions(*op);
    EXPECT_FALSE(texts.empty()) << op->name << " is tried on nothing";
    for (const std::string& text : texts) {
      EXPECT_TRUE(planned_in_sums(row_case(text, 1), true)->plan) << text;
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const Verdict broken = never_too_small(row_case(text, seed), counts);
        ASSERT_FALSE(broken) << text << ": " << *broken;
      }
    }
  }
  EXPECT_GE(counts.bounded, 0.7 * counts.merges) << counts.bounded << " of " << counts.merges;
}

// Sums of squares lose what differences from the mean keep.
constexpr double cancellation = 1e-6;

Verdict in_sums(const Case& c) {
  const Compiled plain = compiled(c);
  if (!plain.error.empty()) return plain.error;
  for (const bool optimize : {true, false}) {
    const auto sums = planned_in_sums(c, optimize);
    if (const Verdict broken =
            compare(run_engine(c, *sums), run_reference(c, *plain.program), cancellation))
      return broken;
  }
  return std::nullopt;
}

TEST(Laws, FoldsInSums) { check_law("Laws.FoldsInSums", {}, 800, in_sums); }

}  // namespace
}  // namespace starfold::laws
