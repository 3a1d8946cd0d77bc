#include "starfold/data/binding/binding_text.h"

#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/base/json.h"

namespace starfold {
namespace {

using nlohmann::json;

json levels_json(const Categorical& declared) {
  return {{"levels", declared.levels},
          {"codes", declared.coding == Categorical::Coding::codes},
          {"reference", declared.reference}};
}

std::shared_ptr<const Categorical> levels_of(const json& written) {
  auto declared = std::make_shared<Categorical>();
  declared->levels = written.at("levels").get<std::vector<std::string>>();
  if (written.at("codes").get<bool>()) declared->coding = Categorical::Coding::codes;
  declared->reference = written.at("reference").get<std::size_t>();
  if (declared->levels.empty() || declared->reference > declared->levels.size() ||
      declared->width() == 0)
    throw RunError("the bindings of inputs to columns name no level");
  return declared;
}

json column_json(const BoundColumn& column) {
  json result = column.categorical ? levels_json(*column.categorical) : json::object();
  result["column"] = column.name;
  return result;
}

BoundColumn column_of(const json& written) {
  BoundColumn column{written.at("column").get<std::string>(), nullptr};
  if (written.size() > 1) column.categorical = levels_of(written);
  return column;
}

json formula_json(const Bindings& bindings) {
  json factors = json::object();
  for (const auto& [name, declared] : bindings.factors) factors[name] = levels_json(*declared);
  json sites = json::array();
  for (const Site& site : bindings.formula.sites)
    sites.push_back({site.name, site.node, site.source});
  return {{"text", bindings.formula.text},
          {"factors", std::move(factors)},
          {"truths", bindings.formula.truths.value_or(std::set<std::string>())},
          {"sites", std::move(sites)}};
}

void read_formula(const json& written, Bindings& bindings) {
  bindings.formula.text = written.at("text").get<std::string>();
  try {
    const formula::Formula formula = formula::parse_formula(bindings.formula.text);
    if (to_text(formula) != bindings.formula.text || has_dot(formula))
      throw RunError("the formula is not in the layout in which it travels");
  } catch (const formula::FormulaError& error) {
    throw RunError(error.what());
  }
  for (const auto& [name, declared] : written.at("factors").items())
    bindings.factors.emplace(name, levels_of(declared));
  bindings.formula.truths = written.at("truths").get<std::set<std::string>>();
  for (const json& site : written.at("sites"))
    bindings.formula.sites.push_back({site.at(0).get<std::string>(), site.at(1).get<std::string>(),
                                      site.at(2).get<std::string>()});
}

}  // namespace

std::string missing_word(Missing missing) {
  static constexpr const char* words[] = {"error", "drop", "nan"};
  return words[static_cast<std::size_t>(missing)];
}

Bindings bindings_of(const ColumnPlan& plan, Missing missing) {
  if (!plan.formula) return {plan.columns, missing, {}, {}};
  return {plan.columns, missing, plan.formula->request, plan.formula->factors};
}

std::string binding_text(const Bindings& bindings) {
  json inputs = json::object();
  for (const auto& [input, columns] : bindings.columns) {
    inputs[input] = json::array();
    for (const BoundColumn& column : columns) inputs[input].push_back(column_json(column));
  }
  json whole = {{"inputs", std::move(inputs)}, {"missing", missing_word(bindings.missing)}};
  if (!bindings.formula.text.empty()) whole["formula"] = formula_json(bindings);
  return json_line(whole);
}

Bindings parse_bindings(std::string_view text) {
  Bindings bindings;
  try {
    const json written = parse_json(text, 8);
    for (const auto& [input, columns] : written.at("inputs").items()) {
      for (const json& column : columns) bindings.columns[input].push_back(column_of(column));
    }
    if (const auto formula = written.find("formula"); formula != written.end())
      read_formula(*formula, bindings);
    const std::string missing = written.at("missing").get<std::string>();
    for (const Missing word : {Missing::error, Missing::drop, Missing::nan}) {
      if (missing == missing_word(word)) bindings.missing = word;
    }
  } catch (const json::exception&) {
    throw RunError("the bindings of inputs to columns cannot be read");
  }
  // One layout: whatever else stood in the text would be in the hash and mean nothing.
  if (binding_text(bindings) != text)
    throw RunError("the bindings of inputs to columns cannot be read");
  return bindings;
}

}  // namespace starfold
