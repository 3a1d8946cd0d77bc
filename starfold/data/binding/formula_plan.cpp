#include "starfold/data/binding/formula_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/base/suggest.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/agree.h"
#include "starfold/data/binding/shown_names.h"

namespace starfold {
namespace {

using formula::Design;
using formula::DesignColumn;
using formula::Expr;
using formula::Formula;
using formula::FormulaError;
using formula::Role;
using formula::Variable;

constexpr std::string_view site_name = "site";

// Which input a column goes to.
constexpr std::pair<Role, std::string_view> inputs_of_roles[] = {
    {Role::response, "y"}, {Role::predictor, "x"},  {Role::offset, "offset"},
    {Role::time, "time"},  {Role::event, "status"}, {Role::group, "group"}};

std::string input_of(Role role) {
  const auto* found = std::find_if(std::begin(inputs_of_roles), std::end(inputs_of_roles),
                                   [&](const auto& row) { return row.first == role; });
  return std::string(found->second);
}

class FormulaPlanner {
 public:
  FormulaPlanner(const ir::Program& program, const std::vector<DataSource>& sources,
                 const FormulaRequest& request, const Categoricals& categoricals,
                 const OtherInputs& others)
      : program_(program),
        sources_(sources),
        request_(request),
        categoricals_(categoricals),
        others_(others) {}

  std::shared_ptr<const FormulaPlan> plan() {
    const Formula written = formula::parse_formula(request_.text);
    // Read once more from its one layout, so that it means the same here and where that is sent to.
    const Formula formula = formula::parse_formula(to_text(with_names(written)));
    request_.text = to_text(formula);
    const bool wants_offset =
        find_input("offset") != nullptr && others_.inputs.count("offset") == 0;
    Design design(
        formula, [&](const std::string& name, const Expr& at) { return find(formula, name, at); },
        wants_offset);
    request_.truths = truths_;
    if (!site_) request_.sites.clear();
    auto plan = std::make_shared<FormulaPlan>(
        FormulaPlan{std::move(request_), std::move(factors_), std::move(design), site_, {}});
    give_columns(formula, *plan);
    return plan;
  }

 private:
  // --- names

  // `.` is every column of the first client that nothing else takes.
  Formula with_names(const Formula& formula) const {
    std::vector<std::string> rest;
    if (has_dot(formula)) {
      std::set<std::string> known = others_.columns;
      if (formula.response) {
        for (const std::string& name : names_in(*formula.response)) known.insert(name);
      }
      if (formula.group) {
        for (const std::string& name : names_in(*formula.group)) known.insert(name);
      }
      check_same_columns(sources_, known);
      for (const std::string& name : sources_.front().order) {
        if (known.count(name) == 0 && !name.empty() && sources_.front().has_column(name))
          rest.push_back(name);
      }
    }
    return without_dot(formula, rest);
  }

  Variable find(const Formula& formula, const std::string& name, const Expr& at) {
    const auto has = [&](const DataSource& source) { return source.has_column(name); };
    const bool there = std::any_of(sources_.begin(), sources_.end(), has);
    if (name == site_name && !there && !request_.sites.empty()) {
      site_ = true;
      Variable variable{Variable::Kind::factor};
      for (const Site& site : request_.sites) variable.levels.push_back(site.name);
      return variable;
    }
    if (!there) throw FormulaError(formula, at, no_column(name));
    const auto declared = categoricals_.find(name);
    if (declared != categoricals_.end()) {
      factors_.insert(*declared);
      const Categorical& levels = *declared->second;
      return {Variable::Kind::factor, levels.levels,
              levels.reference < levels.levels.size() ? levels.reference : 0, false,
              levels.coding == Categorical::Coding::codes};
    }
    if (!is_truth(name)) return {};
    truths_.insert(name);
    return {Variable::Kind::truth};
  }

  std::string no_column(const std::string& name) const {
    const DataSource& first = sources_.front();
    const bool safe = !first.table || first.table->names_are_safe();
    std::string near = safe ? nearest(name, first.order) : "";
    if (!looks_like_name(near)) near.clear();
    return fmt::format("client {} has no column {}{}", first.client, shown(name),
                       near.empty() ? fmt::format("; it has {}", first.shown_columns())
                                    : fmt::format("; did you mean {}?", near));
  }

  bool is_truth(const std::string& name) const {
    if (request_.truths) return request_.truths->count(name) != 0;
    bool any = false;
    for (const DataSource& source : sources_) {
      if (!source.table) return false;
      const std::vector<ColumnInfo>& columns = source.table->columns();
      const auto found = std::find_if(columns.begin(), columns.end(),
                                      [&](const ColumnInfo& info) { return info.name == name; });
      if (found == columns.end()) return false;
      const bool truth = found->type == "true/false";
      if (!truth && found->kind != ColumnKind::unknown)
        return false;  // a client without records knows nothing
      any = any || truth;
    }
    return any;
  }

  // --- inputs

  const ir::Input* find_input(const std::string& name) const {
    const auto found = std::find_if(
        program_.inputs.begin(), program_.inputs.end(),
        [&](const ir::Input& input) { return input.name == name && input.type.federated(); });
    return found == program_.inputs.end() ? nullptr : &*found;
  }

  // What programs call an event and a group differs.
  std::string input_for(Role role) const {
    static constexpr std::pair<Role, const char*> others[] = {
        {Role::event, "event"}, {Role::group, "cluster"}, {Role::group, "stratum"}};
    const std::string name = input_of(role);
    if (find_input(name) != nullptr) return name;
    for (const auto& [same, other] : others) {
      if (same == role && find_input(other) != nullptr) return other;
    }
    return name;
  }

  void give_columns(const Formula& formula, FormulaPlan& plan) const {
    const std::vector<DesignColumn>& columns = plan.design.columns();
    for (std::size_t c = 0; c < columns.size(); ++c)
      plan.inputs[input_for(columns[c].role)].push_back(c);
    for (const auto& [name, chosen] : plan.inputs) {
      const ir::Input* input = find_input(name);
      if (input == nullptr) throw RunError(no_input(name, columns[chosen.front()]));
      if (others_.inputs.count(name) != 0)
        throw RunError(fmt::format(
            "input {} has columns of its own, and the formula makes some for it as well", name));
      const bool one = input->type.rank() == 1;
      if (input->type.rank() > 2 || (one && chosen.size() != 1))
        throw RunError(fmt::format(
            "input {} is {}, and the formula makes {} for it", name, input->type.to_string(),
            chosen.size() == 1 ? "a column" : fmt::format("{} columns", chosen.size())));
    }
    if (find_input("x") != nullptr && plan.inputs.count("x") == 0)
      throw FormulaError(formula, formula.right,
                         "no column is left for input x; a program needs at least one");
  }

  std::string no_input(const std::string& name, const DesignColumn& column) const {
    const std::string has = fmt::format("the program has no federated input {}; it has {}", name,
                                        shown_list(federated_inputs(program_)));
    switch (column.role) {
      case Role::predictor:
        return fmt::format("the right side of a formula is for input x, but {}", has);
      case Role::offset:
        return fmt::format("offset({}) is for an input offset, but {}", column.name, has);
      case Role::group:
        return fmt::format("| {} is for an input group, cluster or stratum, but {}", column.name,
                           has);
      case Role::response:
        return fmt::format(
            "the left side of a formula is for input y, but {}; a formula without a left side is "
            "written ~ age + sex",
            has);
      default:
        return fmt::format("Surv(time, status) is for inputs time and status, but {}", has);
    }
  }

  const ir::Program& program_;
  const std::vector<DataSource>& sources_;
  FormulaRequest request_;
  const Categoricals& categoricals_;
  const OtherInputs& others_;
  Categoricals factors_;
  std::set<std::string> truths_;
  bool site_ = false;
};

}  // namespace

std::vector<std::string> FormulaPlan::columns() const {
  std::vector<std::string> names = design.sources();
  if (site) std::erase(names, site_name);
  return names;
}

std::shared_ptr<const FormulaPlan> plan_formula(const ir::Program& program,
                                                const std::vector<DataSource>& sources,
                                                const FormulaRequest& request,
                                                const Categoricals& categoricals,
                                                const OtherInputs& others) {
  return FormulaPlanner(program, sources, request, categoricals, others).plan();
}

bool has_intercept(const std::string& formula) {
  return formula::expand(formula::parse_formula(formula), {"."}).intercept;
}

bool has_offset(const std::string& formula) {
  return !formula::expand(formula::parse_formula(formula), {"."}).offsets.empty();
}

}  // namespace starfold
