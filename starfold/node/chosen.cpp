#include "starfold/node/chosen.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/cases.h"
#include "starfold/base/utf8.h"
#include "starfold/federation/program.h"
#include "starfold/formula/distinctions.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/machine.h"

namespace starfold {
namespace {

constexpr std::size_t most_conditions = 64;  // as in a program
// Of all values of a formula. Each is computed for all records while the node does nothing else.
constexpr std::size_t most_differences = 400;
constexpr std::size_t most_at_once = 8000;      // of differences that are counted at once
constexpr std::int64_t most_pairs = 4'000'000;  // of columns, one of which may be missing

// The columns that a study has, and some more that tell what it chooses by, beside each other: a program over the records that
// the study computes with.
struct Counting {
  std::string text;
  ColumnBindings bindings;
  std::vector<std::pair<std::string, std::string>>
      inputs;  // as the program calls them, and as the study does; those of the formula have one name
};

Counting counting_program(const ColumnPlan& plan, bool differences, Missing missing) {
  Counting counting;
  std::string declared;
  std::string joined;
  const auto add = [&](const std::string& name, const std::string& of) {
    declared += fmt::format("input {0} : [*, p{1}]\n", name, counting.inputs.size());
    joined += (joined.empty() ? "" : ", ") + name;
    counting.inputs.emplace_back(name, of);
  };
  if (plan.formula) {
    for (const auto& [name, columns] : plan.formula->inputs) add(name, name);
    if (differences && plan.formula->inputs.count("x") == 0) add("x", "x");
  }
  for (const auto& [name, columns] : plan.columns) {
    const std::string own = fmt::format("bound{}", counting.inputs.size());
    for (const BoundColumn& column : columns) counting.bindings[own].columns.push_back(column.name);
    add(own, name);
  }
  // Where missing values stay, a program may use those records alone that have a value in some column.
  const char* there = missing == Missing::nan ? "table == table" : "ones_like(table[:, 1:1])";
  counting.text =
      declared +
      fmt::format("let table = {}\nlet there = {}\n",
                  counting.inputs.size() == 1 ? joined : "concat[2](" + joined + ")", there) +
      "output ones = (table == 1)' @ there\n"
      "output zeros = (table == 0)' @ there\n"
      // Relative to the largest: squares of small numbers would be 0.
      "let known = abs(where(isnan(table), 0, table))\n"
      "let largest = max[*](known)\n"
      "let share = known / where(largest > 0, largest, 1)\n"
      "output sizes = share' @ there\n"
      "output squares = square(share)' @ there\n";
  return counting;
}

// What is counted of each column, over all records or over those that have a value in another.
class Counts {
 public:
  Counts(const CompiledProgram& program, const ColumnPlan& plan, const DataSource& source,
         const LoadOptions& options, std::int64_t room) {
    const Client client = load_client(program.plan->program, source, plan, options, room).client;
    const SizeValues sizes = bind_client(program.plan->program, client, {});
    EngineOptions engine_options;
    engine_options.threads = options.threads;
    Engine engine(program.plan, sizes, client, engine_options);
    Machine machine(program.plan, sizes, {});
    while (machine.round() != nullptr)
      machine.absorb(engine.encode(*machine.round(), machine.to_send()));
    for (std::size_t i = 0; i < 4; ++i) outputs_[i] = machine.output(i);
  }

  std::size_t groups() const { return static_cast<std::size_t>(outputs_[0].shape[1]); }
  double ones(std::size_t column, std::size_t group) const { return at(0, column, group); }
  double zeros(std::size_t column, std::size_t group) const { return at(1, column, group); }
  // The effective number of records in which it is not 0.
  double effective(std::size_t column, std::size_t group) const {
    const double size = at(2, column, group);
    return size == 0 ? 0 : size * size / at(3, column, group);
  }

 private:
  double at(std::size_t output, std::size_t column, std::size_t group) const {
    return outputs_[output].data[column * groups() + group];
  }
  Tensor outputs_[4];
};

bool is_one_hot(const BoundColumn& column) {
  return column.categorical && column.categorical->coding == Categorical::Coding::onehot;
}

// A column of 0 and 1 that stands for a level, or for several at once.
struct Indicator {
  std::size_t place = 0;  // among all columns
  std::string name;
  std::string factor = {};  // that it is a level of; empty where it is an interaction
};

// The differences that are counted at once, by the names of their columns, with what they are about.
using Differences = std::map<std::string, std::string>;

struct Columns {
  std::vector<Indicator> indicators;
  std::vector<std::pair<std::size_t, std::string>> differences;  // by place: what it is about
};

Columns columns_of(const Counting& counting, const ColumnPlan& study, const ColumnPlan& plan,
                   const Differences& differences) {
  Columns found;
  std::size_t place = 0;
  const auto add_made = [&](const formula::DesignColumn& column) {
    const std::vector<formula::DesignColumn::Piece>& pieces = column.pieces;
    const auto is_indicator = [](const auto& piece) { return piece.indicator; };
    const auto about = differences.find(column.name);
    if (about != differences.end()) {
      found.differences.emplace_back(place, about->second);
    } else if (!pieces.empty() && std::all_of(pieces.begin(), pieces.end(), is_indicator)) {
      const bool one = pieces.size() == 1;
      found.indicators.push_back(
          {place, column.name,
           one ? fmt::format("{} of the formula",
                             plan.formula->design.variables()[pieces[0].variable])
               : ""});
    }
    ++place;
  };
  for (const auto& [name, of] : counting.inputs) {
    if (plan.formula && plan.formula->inputs.count(name) != 0) {
      for (const std::size_t column : plan.formula->inputs.at(name))
        add_made(plan.formula->design.columns()[column]);
      continue;
    }
    for (const BoundColumn& column : study.columns.at(of)) {
      for (const std::string& level : column_names({column})) {
        if (is_one_hot(column)) found.indicators.push_back({place, level, column.name});
        ++place;
      }
    }
  }
  if (found.differences.size() != differences.size())
    throw Bug("a column that tells what a formula chooses by is not there");
  return found;
}

class Judgement {
 public:
  Judgement(double least, const Counts& counts) : least_(least), counts_(counts) {}

  Forbidden of(const Columns& columns) const {
    for (std::size_t group = 0; group < counts_.groups(); ++group) {
      std::map<std::string, std::pair<double, double>> others;  // by factor: in a level, and all
      for (const Indicator& indicator : columns.indicators) {
        const double in = counts_.ones(indicator.place, group);
        const double out = counts_.zeros(indicator.place, group);
        if (few(in) || few(out)) return thin(indicator.name, in, in + out);
        if (indicator.factor.empty()) continue;
        others[indicator.factor].first += in;
        others[indicator.factor].second = in + out;
      }
      for (const auto& [factor, number] : others) {
        const double rest = number.second - number.first;
        if (few(rest)) return thin("the reference level of " + factor, rest, number.second);
      }
      for (const auto& [place, what] : columns.differences) {
        const double number = counts_.effective(place, group);
        if (few(number)) return told_apart(what, number);
      }
    }
    return std::nullopt;
  }

 private:
  bool few(double number) const {
    constexpr double rounding = 1e-9;
    return number != 0 && !(number >= least_ * (1 - rounding));  // what is no number is few
  }
  Decision thin(const std::string& what, double in, double all) const {
    return {Refusal::policy, "min_support",
            fmt::format("{} is true of {:g} of {:g} records; at least {:g} must be in and out, or "
                        "none",
                        printable(what), in, all, least_)};
  }
  Decision told_apart(const std::string& what, double number) const {
    return {Refusal::policy, "min_support",
            fmt::format("{}: effectively {:.3g} records are told from the others; at least {:g} "
                        "must be, or none",
                        printable(what), number, least_)};
  }

  double least_;
  const Counts& counts_;
};

// Levels that only occur multiplied by numbers, as terms of their own: those that `age:ward` tells apart are those of `ward`.
std::vector<formula::Expr> levels_alone(const ColumnPlan& plan) {
  std::vector<formula::Expr> terms;
  std::set<std::string> texts;
  for (const formula::DesignColumn& column : plan.formula->design.columns()) {
    std::string text;
    bool mixed = false;
    for (const formula::DesignColumn::Piece& piece : column.pieces) {
      mixed = mixed || !piece.indicator;
      if (piece.indicator)
        text += (text.empty() ? "~ " : ":") + plan.formula->design.variables()[piece.variable];
    }
    if (mixed && !text.empty() && texts.insert(text).second)
      terms.push_back(formula::parse_formula(text).right);
  }
  return terms;
}

bool has_indicators(const ColumnPlan& plan) {
  for (const auto& [input, columns] : plan.columns) {
    if (std::any_of(columns.begin(), columns.end(), is_one_hot)) return true;
  }
  if (!plan.formula) return false;
  for (const formula::DesignColumn& column : plan.formula->design.columns()) {
    for (const formula::DesignColumn::Piece& piece : column.pieces) {
      if (piece.indicator) return true;
    }
  }
  return false;
}

Decision too_many(const std::string& what) {
  return {Refusal::merges, std::string(rule_of(Refusal::merges)), what};
}

}  // namespace

Forbidden forbids_choice(const Policy& policy, const DataSource& source, const ColumnPlan& study,
                         const Categoricals& categoricals, const LoadOptions& options,
                         std::int64_t room) {
  if (!source.table) return std::nullopt;
  formula::Formula formula;
  std::vector<formula::Distinction> differences;
  std::vector<formula::Expr> levels;
  if (study.formula) {
    formula = formula::parse_formula(study.formula->request.text);
    const std::size_t conditions = conditions_in(formula).size();
    if (conditions > most_conditions)
      return too_many(fmt::format("the formula chooses by {} conditions, more than {}", conditions,
                                  most_conditions));
    const auto is_factor = [&](const std::string& name) {
      return study.formula->factors.count(name) != 0 || !source.has_column(name);
    };
    std::optional<std::vector<formula::Distinction>> found =
        distinctions_in(formula, is_factor, most_with_triples, most_differences);
    if (!found)
      return too_many(fmt::format("the formula chooses in more than {} cases", most_differences));
    differences = *std::move(found);
    levels = levels_alone(study);
  }
  if (differences.empty() && !has_indicators(study)) return std::nullopt;

  std::size_t next = 0;
  do {
    formula::Formula more = formula;
    more.right = {formula::Expr::Kind::call, 0, "(", {formula.right}};
    const auto add = [&](const formula::Expr& term) {
      more.right = {formula::Expr::Kind::call, 0, "+", {std::move(more.right), term}};
    };
    for (const formula::Expr& level : levels) add(level);
    Differences about;
    for (std::size_t bytes = 0; next < differences.size() && bytes < most_at_once; ++next) {
      const formula::Expr& difference = differences[next].told;
      const auto added = about.emplace(to_text(difference), differences[next].what).first;
      add(difference);
      bytes += added->first.size();
    }
    FormulaRequest request;
    if (study.formula) request = study.formula->request;
    if (study.formula) request.text = to_text(more);
    const Counting counting =
        counting_program(study, !about.empty() || !levels.empty(), options.missing);
    const std::shared_ptr<const CompiledProgram> program =
        compile_program({"counts.fold", counting.text, {}});
    if (!program->plan) throw Bug("what counts choices does not compile");
    const ColumnPlan plan =
        plan_columns(program->plan->program, {source}, counting.bindings, categoricals, request);
    std::int64_t width = 0;
    for (const auto& [input, names] : input_names(plan))
      width += static_cast<std::int64_t>(names.size());
    if (options.missing == Missing::nan && width > most_pairs / width)
      return too_many(
          fmt::format("the study chooses among {} columns that may miss values", width));
    const Counts counts(*program, plan, source, options, room);
    const Columns columns = columns_of(counting, study, plan, about);
    if (Forbidden forbidden = Judgement(policy.min_support, counts).of(columns)) return forbidden;
  } while (next < differences.size());
  return std::nullopt;
}

}  // namespace starfold
