#include "starfold/node/chosen.h"

#include <fmt/format.h>

#include "starfold/base/utf8.h"
#include "starfold/federation/program.h"
#include "starfold/runtime/engine.h"
#include "starfold/runtime/machine.h"

namespace starfold {
namespace {

constexpr std::size_t most_conditions = 64;  // as in a program

// A formula with a column for each condition, and with all columns that the bindings use: then the same records have all their
// values.
std::string counting_formula(const std::vector<formula::Expr>& conditions,
                             const std::set<std::string>& columns) {
  std::string text;
  const auto add = [&](const std::string& term) {
    text += (text.empty() ? "~" : " +") + (" " + term);
  };
  for (const formula::Expr& condition : conditions)
    add(fmt::format("I(({}) + 0)", to_text(condition)));
  for (const std::string& column : columns) add(formula::quoted_name(column));
  return text;
}

// How often each column of the formula is not 0, and how many records there are.
struct Counts {
  std::vector<double> columns;
  double records = 0;
};

Counts count(const CompiledProgram& program, const ColumnPlan& plan, const DataSource& source,
             const LoadOptions& options, std::int64_t room) {
  const Client client = load_client(program.plan->program, source, plan, options, room).client;
  const SizeValues sizes = bind_client(program.plan->program, client, {});
  EngineOptions engine_options;
  engine_options.threads = options.threads;
  Engine engine(program.plan, sizes, client, engine_options);
  Machine machine(program.plan, sizes, {});
  while (machine.round() != nullptr)
    machine.absorb(engine.encode(*machine.round(), machine.to_send()));
  return {machine.output(0).data, machine.output(1).item()};
}

}  // namespace

Forbidden forbids_choice(const Policy& policy, const DataSource& source, const Bindings& bindings,
                         const Categoricals& categoricals, const LoadOptions& options,
                         std::int64_t room) {
  std::vector<formula::Expr> conditions;
  std::set<std::string> columns;
  if (!bindings.formula.text.empty()) {
    const formula::Formula formula = formula::parse_formula(bindings.formula.text);
    conditions = conditions_in(formula);
    for (const std::string& name : names_in(formula)) columns.insert(name);
  }
  for (const auto& [input, bound] : bindings.columns) {
    for (const BoundColumn& column : bound) columns.insert(column.name);
  }
  std::erase_if(columns, [&](const std::string& name) { return !source.has_column(name); });
  if (!source.table || (conditions.empty() && categoricals.empty())) return std::nullopt;
  if (conditions.size() > most_conditions)
    return Decision{Refusal::merges, std::string(rule_of(Refusal::merges)),
                    fmt::format("the formula chooses by {} conditions, more than {}",
                                conditions.size(), most_conditions)};

  static const std::shared_ptr<const CompiledProgram> program = compile_program(
      {"counts.fold", "input x : [*, p]\noutput s = sum[*](x != 0)\noutput n = records(x)\n", {}});
  FormulaRequest request = bindings.formula;
  request.text = counting_formula(conditions, columns);
  const ColumnPlan plan = plan_columns(program->plan->program, {source}, {}, categoricals, request);
  const Counts counts = count(*program, plan, source, options, room);
  const double least = policy.min_support;
  const auto few = [&](double number) { return number > 0 && number < least; };
  const auto thin = [&](const std::string& what, double in) -> Forbidden {
    if (!few(in) && !few(counts.records - in)) return std::nullopt;
    return Decision{Refusal::policy, "min_support",
                    fmt::format("{} is true of {:g} of {:g} records; at least {:g} must be in and "
                                "out, or none",
                                printable(what), in, counts.records, least)};
  };
  std::map<std::size_t, double> others;  // by factor: records whose level has a column
  const std::vector<formula::DesignColumn>& made = plan.formula->design.columns();
  const std::vector<std::size_t>& places = plan.formula->inputs.at("x");
  for (std::size_t i = 0; i < places.size(); ++i) {
    const formula::DesignColumn& column = made[places[i]];
    const formula::DesignColumn::Piece& piece = column.pieces.at(0);
    if (piece.indicator) others[piece.variable] += counts.columns[i];
    const bool condition = piece.variable < conditions.size();
    if (!condition && !piece.indicator) continue;
    const std::string what = condition ? to_text(conditions[piece.variable]) : column.name;
    if (const Forbidden forbidden = thin(what, counts.columns[i])) return forbidden;
  }
  for (const auto& [variable, with] : others) {
    const std::string& name = plan.formula->design.variables()[variable];
    if (const Forbidden forbidden = thin("the reference level of " + name, counts.records - with))
      return forbidden;
  }
  return std::nullopt;
}

}  // namespace starfold
