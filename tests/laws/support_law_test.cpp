// Laws of support: on how many records a number rests is what a look at each record says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "starfold/base/cases.h"
#include "starfold/base/error.h"
#include "starfold/ir/forms.h"
#include "starfold/merge/comoments.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/machine.h"
#include "starfold/support/choices.h"
#include "starfold/support/support.h"
#include "starfold/tensor/axis_view.h"
#include "starfold/tensor/samples.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using ir::NodeId;

// What each record has in each cell.
using Terms = std::vector<std::vector<double>>;

// Values of truth set from outside: of a node, or of the condition of a `where` that is a number.
struct Truths {
  std::set<NodeId> nodes;
  std::set<NodeId> conditions;
  double value = 0;
  support::Case each = {};  // in a case of them each has its own

  double value_of(NodeId id) const { return each.empty() ? value : each.at(id); }
};

// A client's part of a round, evaluated on all of its records by the meaning of each operation.
class Local {
 public:
  Local(const Plan& plan, const Round& round, const SizeValues& sizes, const Client& client,
        const std::map<NodeId, Tensor>& received)
      : program_(plan.program), round_(round), sizes_(sizes), client_(client) {
    for (const auto& [id, value] : received) shared_[id] = value;
    std::map<NodeId, std::vector<Tensor>> several;  // results of one operation
    for (const NodeId id : round.constants) {
      const ir::Node& node = program_.graph[id];
      if (node.kind == ir::Kind::project) {
        shared_[id] = several.at(node.args[0])[node.index];
        continue;
      }
      several[id] = results(node, shared_);
      shared_[id] = several[id].front();
    }
    values_ = evaluate({});
  }

  // The values of the round with truth values set.
  std::map<NodeId, Tensor> evaluate(const Truths& truths) const {
    std::map<NodeId, Tensor> values = shared_;
    for (const NodeId id : round_.encoders) {
      const ir::Node& node = program_.graph[id];
      if (node.kind == ir::Kind::input) {
        values[id] = client_.arrays.at(program_.inputs[node.index].name);
      } else if (ir::is_op(node, "where", 3) && truths.conditions.count(node.args[0]) != 0) {
        Tensor condition = values.at(node.args[0]);
        std::fill(condition.data.begin(), condition.data.end(), truths.value_of(node.args[0]));
        values[id] = apply(program_, node,
                           {&condition, &values.at(node.args[1]), &values.at(node.args[2])}, sizes_)
                         .front();
      } else {
        values[id] = compute(node, values);
      }
      if (truths.nodes.count(id) != 0)
        std::fill(values[id].data.begin(), values[id].data.end(), truths.value_of(id));
    }
    return values;
  }

  // The fold's operand, one record of it.
  static Tensor record(const Tensor& value, std::size_t axis, std::size_t at) {
    std::vector<char> dropped(static_cast<std::size_t>(value.shape[axis]), 1);
    dropped[at] = 0;
    return keep_slices(value, axis, dropped);
  }

  std::size_t records(const ir::Node& fold) const {
    const std::size_t axis = *program_.graph[fold.args[0]].type().record_axis();
    return static_cast<std::size_t>(values_.at(fold.args[0]).shape[axis]);
  }

  // What a function of one record's operands gives for each.
  template <typename Of>
  Terms each(const ir::Node& fold, const std::map<NodeId, Tensor>& values, const Of& of) const {
    Terms terms;
    for (std::size_t at = 0; at < records(fold); ++at) {
      std::vector<Tensor> operands;
      for (const NodeId arg : fold.args)
        operands.push_back(record(values.at(arg), *program_.graph[arg].type().record_axis(), at));
      terms.push_back(of(operands));
    }
    return terms;
  }

  // A sum of one record is its term.
  Terms alone(const ir::Node& fold, const std::map<NodeId, Tensor>& values) const {
    return each(fold, values, [&](const std::vector<Tensor>& operands) {
      std::vector<const Tensor*> args;
      for (const Tensor& operand : operands) args.push_back(&operand);
      return apply(program_, fold, std::move(args), sizes_).front().data;
    });
  }

  // All records together.
  Tensor fold(const ir::Node& fold, const std::map<NodeId, Tensor>& values) const {
    return compute(fold, values);
  }

  // A number for each entry of a record's part of each cell, put together.
  template <typename Of, typename Join>
  Terms by_entry(const ir::Node& fold, const std::map<NodeId, Tensor>& values, double start,
                 const Of& of, const Join& join) const {
    return each(fold, values, [&](const std::vector<Tensor>& operands) {
      const Samples all = samples(operands[0], fold.attrs.axes);
      std::vector<double> cells(all.count(), start);
      for (std::size_t cell = 0; cell < cells.size(); ++cell) {
        for (const double x : all[cell]) cells[cell] = join(cells[cell], of(x, cell));
      }
      return cells;
    });
  }

  const std::map<NodeId, Tensor>& values() const { return values_; }
  const ir::Graph& graph() const { return program_.graph; }

 private:
  std::vector<Tensor> results(const ir::Node& node, const std::map<NodeId, Tensor>& values) const {
    if (node.kind != ir::Kind::apply) return {leaf_value(node, sizes_)};
    std::vector<const Tensor*> args;
    for (const NodeId arg : node.args) args.push_back(&values.at(arg));
    return apply(program_, node, std::move(args), sizes_);
  }
  Tensor compute(const ir::Node& node, const std::map<NodeId, Tensor>& values) const {
    return results(node, values).front();
  }

  const ir::Program& program_;
  const Round& round_;
  const SizeValues& sizes_;
  const Client& client_;
  std::map<NodeId, Tensor> shared_;
  std::map<NodeId, Tensor> values_;
};

double plus(double a, double b) { return a + b; }

// The terms that a part of a fold's state rests on, from the definition in words; where there are none in the first list,
// those of the others. `chosen`: whether records that conditions leave out count too.
struct Rests {
  std::vector<std::function<Terms(const std::map<NodeId, Tensor>&)>> turns;
  bool chosen = false;
  bool deviations = false;  // 0 up to rounding where all records are alike
  bool tied =
      false;  // an extreme that others have up to rounding: who has it is a matter of rounding
};

std::vector<Rests> rests_of(const Local& local, const ir::Node& fold, const Monoid& monoid,
                            const MergeState& state) {
  using Values = std::map<NodeId, Tensor>;
  const auto entries = [&](auto of) {
    return [&local, fold, of](const Values& values) {
      return local.by_entry(fold, values, 0, of, plus);
    };
  };
  const auto ones = [&local, fold](const Values&) {
    return Terms(local.records(fold), std::vector<double>(1, 1.0));
  };
  const auto same = [](double x, std::size_t) { return x; };
  const auto square = [](double x, std::size_t) { return x * x; };
  if (&monoid == &monoids::sum)
    return {{{[&local, fold](const Values& values) { return local.alone(fold, values); }}, true}};
  if (&monoid == &monoids::count && ir::is_op(fold, "count", 1))
    return {{{entries([](double, std::size_t) { return 1.0; })}}};
  if (&monoid == &monoids::count) return {{{ones}}};
  if (&monoid == &monoids::norm) return {{{entries(square)}, true}, {{entries(square)}, true}};
  if (&monoid == &monoids::min || &monoid == &monoids::max) {
    // The engine may round the values otherwise; which records have the extreme is the same.
    const Tensor own = local.fold(fold, local.values());
    const auto within = [&](double tolerance) {
      return entries([own, tolerance](double x, std::size_t cell) {
        const double to = own.data[cell];
        return x == to || std::fabs(x - to) <= tolerance * (1 + std::fabs(to)) ? 1.0 : 0.0;
      });
    };
    const bool tied = within(0)(local.values()) != within(1e-9)(local.values());
    return {{{within(0)}, false, false, tied}};
  }
  if (&monoid == &monoids::any || &monoid == &monoids::all) {
    const bool wanted = &monoid == &monoids::any;
    return {{{[&local, fold, wanted](const Values& values) {
      return local.by_entry(
          fold, values, 0,
          [wanted](double x, std::size_t) { return (x != 0) == wanted ? 1.0 : 0.0; },
          [](double a, double b) { return std::max(a, b); });
    }}}};
  }
  if (&monoid == &monoids::prod) {
    const auto factors = [&local, fold](auto of) {
      return [&local, fold, of](const Values& values) {
        Terms terms = local.by_entry(
            fold, values, 1, [](double x, std::size_t) { return x; },
            [](double a, double b) { return a * b; });
        for (std::vector<double>& cells : terms) {
          for (double& x : cells) x = of(x);
        }
        return terms;
      };
    };
    return {{{factors([](double x) { return x == 0 ? 1.0 : 0.0; }),
              factors([](double x) { return std::log(std::fabs(x)); }),
              factors([](double x) { return x < 0 ? 1.0 : 0.0; })}}};
  }
  if (&monoid == &monoids::logsumexp) {
    const Tensor own = monoid.finish(state);
    const auto term = entries([own](double x, std::size_t cell) {
      return x == -INFINITY ? 0.0 : std::exp(x - own.data[cell]);
    });
    return {{{term}, true}};
  }
  if (&monoid == &monoids::moments) {
    const Tensor mean = state[1];
    return {{{ones}},
            {{entries(same)}, true},
            {{entries([mean](double x, std::size_t cell) {
               return (x - mean.data[cell]) * (x - mean.data[cell]);
             })},
             false,
             true}};
  }
  std::vector<Rests> covariance = {{{ones}}};
  for (std::size_t i = 0; i < fold.args.size(); ++i) {
    covariance.push_back(
        {{[&local, fold, i](const Values& values) {
           return local.each(fold, values, [i](const std::vector<Tensor>& x) { return x[i].data; });
         }},
         true});
  }
  for (std::size_t i = 0; i < fold.args.size(); ++i) {
    covariance.push_back({{[&local, fold, state, i](const Values& values) {
                            return local.each(fold, values, [&](const std::vector<Tensor>& x) {
                              std::vector<double> squares = x[i].data;
                              for (std::size_t k = 0; k < squares.size(); ++k) {
                                const double deviation = squares[k] - state[1 + i].data[k];
                                squares[k] = deviation * deviation;
                              }
                              return squares;
                            });
                          }},
                          false,
                          true});
  }
  covariance.push_back({{[&local, fold, state](const Values& values) {
                          return local.each(fold, values, [&](const std::vector<Tensor>& x) {
                            const std::vector<double>& a = x.front().data;
                            const std::vector<double>& b = x.back().data;
                            const Tensor& mean_b = state[x.size()];
                            std::vector<double> cells;
                            for (std::size_t i = 0; i < a.size(); ++i) {
                              for (std::size_t j = 0; j < b.size(); ++j)
                                cells.push_back((a[i] - state[1].data[i]) *
                                                (b[j] - mean_b.data[j]));
                            }
                            return cells;
                          });
                        }},
                        false,
                        true});
  return covariance;
}

// One number of a message: all that may be thin in it.
struct Cell {
  std::vector<double> in;   // effective numbers of what it rests on
  std::vector<double> out;  // and of what conditions leave out of it
  bool thin = false;        // for sure
  bool unsure = false;      // rounding decides
};

void add(Cell& cell, const std::vector<double>& terms, double scale, bool left_out, bool sure,
         double least) {
  double sizes = 0;
  double top = 0;
  for (const double term : terms) {
    sizes += std::fabs(term);
    top = std::max(top, std::fabs(term));
  }
  double squares = 0;
  for (const double term : terms) squares += top > 0 ? (term / top) * (term / top) : 0;
  double number = sizes == 0 ? 0 : sizes / top * (sizes / top) / squares;
  if (!std::isfinite(sizes)) number = std::nan("");
  (left_out ? cell.out : cell.in).push_back(number);
  const bool noise = sizes > 0 && sizes <= 1e-9 * scale;
  if (!sure || noise || std::fabs(number - least) < 1e-6 * least ||
      (!std::isfinite(sizes) && scale > 0)) {
    cell.unsure = true;
  } else if (number != 0 && !(number >= least)) {
    cell.thin = true;
  }
}

// The conditions in a value: truth values, and numbers that choose where they are not 0.
struct Conditions {
  std::set<NodeId> truths;
  std::set<NodeId> outermost;
  std::set<NodeId> numbers;

  void find(const ir::Graph& graph, NodeId in) {
    const std::vector<NodeId> all = support::truths_in(graph, in);
    const std::vector<NodeId> outer = support::truths_in(graph, in, true);
    std::set<NodeId> seen;
    std::vector<NodeId> pending = {in};
    while (!pending.empty()) {
      const NodeId at = pending.back();
      pending.pop_back();
      const ir::Node& node = graph[at];
      if (!node.federated() || node.kind != ir::Kind::apply || !seen.insert(at).second) continue;
      if (node.op->truth && std::count(all.begin(), all.end(), at) != 0 &&
          std::any_of(node.args.begin(), node.args.end(), [&](NodeId below) {
            return graph[below].federated() && !is_truth(graph, below);
          }))
        continue;
      std::size_t first = 0;
      if (ir::is_op(node, "where", 3)) {
        const ir::Node& condition = graph[node.args[0]];
        if (condition.federated() && !(condition.kind == ir::Kind::apply && condition.op->truth)) {
          numbers.insert(node.args[0]);
          // It is compared with 0, and what is compared is no condition of its own.
          if (!is_truth(graph, node.args[0])) first = 1;
        }
      }
      pending.insert(pending.end(), node.args.begin() + static_cast<std::ptrdiff_t>(first),
                     node.args.end());
    }
    std::copy_if(all.begin(), all.end(), std::inserter(truths, truths.end()),
                 [&](NodeId id) { return seen.count(id) != 0; });
    std::copy_if(outer.begin(), outer.end(), std::inserter(outermost, outermost.end()),
                 [&](NodeId id) { return seen.count(id) != 0; });
  }

 private:
  static bool is_truth(const ir::Graph& graph, NodeId id) {
    while (ir::is_view(graph[id])) id = graph[id].args[0];
    const std::vector<NodeId> found = support::truths_in(graph, id);
    return std::find(found.begin(), found.end(), id) != found.end();
  }
};

// The conditions of a fold: sets of truth values, each set together.
std::vector<Truths> conditions_of(const ir::Graph& graph, const ir::Node& fold) {
  Conditions found;
  for (const NodeId arg : fold.args) found.find(graph, arg);
  std::vector<Truths> all;
  for (const NodeId id : found.truths) all.push_back({{id}, {}});
  for (const NodeId id : found.numbers) all.push_back({{}, {id}});
  if (found.outermost.size() + found.numbers.size() > 1)
    all.push_back({found.outermost, found.numbers});
  return all;
}

// Every two of a fold's conditions and signs, and every three of few, as each other's cases.
void add_joint_cases(const ir::Graph& graph, const ir::Node& fold, std::vector<Truths>& all) {
  Conditions found;
  std::set<NodeId> signs;
  for (const NodeId arg : fold.args) {
    found.find(graph, arg);
    for (const NodeId sign : support::signs_in(graph, arg)) signs.insert(sign);
  }
  std::vector<NodeId> choices(found.outermost.begin(), found.outermost.end());
  choices.insert(choices.end(), found.numbers.begin(), found.numbers.end());
  std::vector<std::vector<double>> values(choices.size(), {0, 1});
  choices.insert(choices.end(), signs.begin(), signs.end());
  values.resize(choices.size(), {-1, 0, 1});
  for (const ChoiceCase& one : joint_cases(values, most_with_triples)) {
    Truths truths;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (!one[i]) continue;
      (found.numbers.count(choices[i]) != 0 ? truths.conditions : truths.nodes).insert(choices[i]);
      truths.each[choices[i]] = *one[i];
    }
    all.push_back(truths);
  }
}

// The cases of a fold: of the conditions that make one factor of its terms together, of signs, and of both together.
std::vector<Truths> cases_of(const ir::Graph& graph, const ir::Node& fold) {
  // What is folded within a record, or through another function, is one factor.
  const bool by_factor = fold.op->family == Family::matmul ||
                         (fold.attrs.axes.size() == 1 && !ir::is_op(fold, "norm", 1) &&
                          !ir::is_op(fold, "logsumexp", 1));
  std::vector<Truths> all;
  for (const NodeId arg : fold.args) {
    for (const NodeId factor : by_factor ? support::factors_of(graph, arg) : std::vector{arg}) {
      Conditions found;
      found.find(graph, factor);
      std::vector<NodeId> together(found.outermost.begin(), found.outermost.end());
      together.insert(together.end(), found.numbers.begin(), found.numbers.end());
      if (together.size() < 2) continue;
      for (const support::Case& one : support::mixed_cases(together))
        all.push_back({found.outermost, found.numbers, 0, one});
    }
    for (const NodeId sign : support::signs_in(graph, arg)) {
      for (const double value : {-1.0, 0.0, 1.0}) all.push_back({{sign}, {}, 0, {{sign, value}}});
    }
  }
  add_joint_cases(graph, fold, all);
  return all;
}

std::vector<double> column(const Terms& terms, std::size_t cell) {
  std::vector<double> result;
  for (const std::vector<double>& record : terms) result.push_back(record[cell]);
  return result;
}

std::vector<Cell> look(const Local& local, const ir::Node& fold, const Rests& rests,
                       const Tensor& part, double least) {
  std::vector<Cell> cells(part.data.size());
  std::vector<bool> decided(cells.size());
  for (std::size_t turn = 0; turn < rests.turns.size(); ++turn) {
    const Terms terms = rests.turns[turn](local.values());
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (turn > 0 && decided[c]) continue;
      add(cells[c], column(terms, c), rests.deviations ? 1e-3 : 0, false, true, least);
      if (turn == 0) decided[c] = cells[c].in.back() != 0;
    }
  }
  for (std::size_t c = 0; c < cells.size(); ++c) cells[c].thin |= std::isnan(part.data[c]);
  if (!rests.chosen) return cells;
  const Terms terms = rests.turns[0](local.values());
  const auto hold_against = [&](const Truths& truths, bool left_out) {
    Terms other = terms;
    bool sure = true;
    try {
      other = rests.turns[0](local.evaluate(truths));
    } catch (const RunError&) {
      sure = false;  // an index that is none
    }
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::vector<double> now = column(terms, c);
      const std::vector<double> then = column(other, c);
      std::vector<double> difference;
      double scale = 0;
      std::vector<double> alike;
      for (std::size_t r = 0; r < now.size(); ++r) {
        const double apart = std::fabs(then[r] - now[r]);
        const double size = std::fabs(now[r]);
        alike.push_back(apart <= 1e-9 * size ? now[r] : 0);
        cells[c].unsure |= !truths.each.empty() && apart > 1e-12 * size && apart < 1e-6 * size;
        difference.push_back(left_out ? then[r] - now[r] : now[r] - then[r]);
        scale += std::fabs(now[r]) + std::fabs(then[r]);
        if (!std::isfinite(then[r])) scale = INFINITY;
      }
      add(cells[c], difference, scale, left_out, sure, least);
      // Those that are as in a case are few enough to be told apart by it as well.
      if (!truths.each.empty()) add(cells[c], alike, 0, false, sure, least);
    }
  };
  for (Truths truths : conditions_of(local.graph(), fold)) {
    for (const bool left_out : {false, true}) {
      truths.value = left_out ? 1 : 0;
      hold_against(truths, left_out);
    }
  }
  for (const Truths& truths : cases_of(local.graph(), fold)) hold_against(truths, true);
  return cells;
}

Verdict check_round(const Plan& plan, const Round& round, const SizeValues& sizes,
                    const Client& client, const std::map<NodeId, Tensor>& received,
                    const std::vector<MergeState>& states, Support& support, double least) {
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, ThinCell> thin;
  for (const ThinCell& cell : support.thin(round, received, states, least, 1'000'000))
    thin[{cell.merge, cell.part, static_cast<std::size_t>(cell.cell)}] = cell;
  const Local local(plan, round, sizes, client, received);
  for (std::size_t m = 0; m < round.merges.size(); ++m) {
    const ir::Node& fold = plan.program.graph[round.merges[m].fold];
    const std::vector<Rests> rests = rests_of(local, fold, *round.merges[m].monoid, states[m]);
    for (std::size_t part = 0; part < rests.size(); ++part) {
      if (rests[part].tied) continue;
      const std::vector<Cell> cells = look(local, fold, rests[part], states[m][part], least);
      for (std::size_t c = 0; c < cells.size(); ++c) {
        const auto found = thin.find({m, part, c});
        const bool says = found != thin.end();
        const std::string where =
            fmt::format("client {}, {}, part {}, cell {}, least {}", client.name,
                        describe_fold(plan, round.merges[m].fold), part, c, least);
        if (cells[c].thin && !says) return where + " is thin";
        // Terms that cancel within a record may do so up to rounding only.
        if (cells[c].in.front() == 0 && std::fabs(states[m][part].data[c]) < 1e-9) continue;
        if (says && !cells[c].thin && !cells[c].unsure)
          return fmt::format("{} is not thin ({}, {})", where, found->second.effective,
                             found->second.left_out ? "left out" : "in");
        if (!says || cells[c].unsure || std::isnan(found->second.effective)) continue;
        const std::vector<double>& numbers = found->second.left_out ? cells[c].out : cells[c].in;
        if (std::none_of(numbers.begin(), numbers.end(), [&](double number) {
              return close(number, found->second.effective, 1e-6);
            }))
          return fmt::format("{}: {} is none of its effective numbers", where,
                             found->second.effective);
      }
    }
  }
  return std::nullopt;
}

Verdict support_equals_definition(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty())
    return has_no_derivative(c) ? Verdict::nothing() : Verdict(program.error);
  const std::shared_ptr<const Plan> plan = program.program->plan;
  if (!unsupported(*plan).empty()) return unsupported(*plan);
  Random random = c.choices();
  const double least = random.pick(std::vector<double>{1.5, 2, 3, 5, 8});
  try {
    const Settings& settings = c.federation.settings;
    SizeValues sizes = bind_settings(plan->program, settings);
    for (const Client& client : c.federation.clients)
      sizes = bind_client(plan->program, client, sizes);
    std::vector<Engine> engines;
    std::vector<Support> supports;
    for (const Client& client : c.federation.clients) {
      engines.emplace_back(plan, sizes, client, EngineOptions{random.chance(50) ? 512 : 7, 1});
      supports.emplace_back(plan, sizes, engines.back(), random.chance(50) ? 8192 : 4);
    }
    Machine machine(plan, sizes, settings);
    for (int rounds = 0; machine.round() != nullptr && rounds < 8; ++rounds) {
      const Round& round = *machine.round();
      const std::map<NodeId, Tensor> received = machine.to_send();
      std::vector<MergeState> merged;
      for (std::size_t i = 0; i < engines.size(); ++i) {
        const std::vector<MergeState> states = engines[i].encode(round, received);
        if (const Verdict broken = check_round(*plan, round, sizes, c.federation.clients[i],
                                               received, states, supports[i], least))
          return broken;
        if (i == 0) merged = states;
        for (std::size_t m = 0; i > 0 && m < states.size(); ++m)
          round.merges[m].monoid->merge(merged[m], states[m]);
      }
      machine.absorb(merged);
    }
  } catch (const RunError&) {
    return Verdict::nothing();  // a run that stops has sent nothing more
  }
  return std::nullopt;
}

TEST(Laws, SupportEqualsDefinition) {
  check_law("Laws.SupportEqualsDefinition", {}, 1000, support_equals_definition);
}

TEST(Laws, SupportEqualsDefinitionOnSmallPrograms) {
  GeneratorOptions options;
  options.statements = 2;
  options.depth = 3;
  options.functions = false;
  check_law("Laws.SupportEqualsDefinitionOnSmallPrograms", options, 2000,
            support_equals_definition);
}

TEST(Laws, SupportEqualsDefinitionOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("Laws.SupportEqualsDefinitionOnSpecialValues", options, 500, support_equals_definition);
}

TEST(Laws, SupportEqualsDefinitionOfDerivatives) {
  GeneratorOptions options;
  options.derivatives = true;
  check_law("Laws.SupportEqualsDefinitionOfDerivatives", options, 300, support_equals_definition);
}

}  // namespace
}  // namespace starfold::laws
