#include "starfold/data/binding_text.h"

#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/base/json.h"

namespace starfold {
namespace {

using nlohmann::json;

json column_json(const BoundColumn& column) {
  json result = {{"column", column.name}};
  if (!column.categorical) return result;
  const Categorical& declared = *column.categorical;
  result["levels"] = declared.levels;
  result["codes"] = declared.coding == Categorical::Coding::codes;
  result["reference"] = declared.reference;
  return result;
}

BoundColumn column_of(const json& written) {
  BoundColumn column{written.at("column").get<std::string>(), nullptr};
  if (written.size() == 1) return column;
  auto declared = std::make_shared<Categorical>();
  declared->levels = written.at("levels").get<std::vector<std::string>>();
  if (written.at("codes").get<bool>()) declared->coding = Categorical::Coding::codes;
  declared->reference = written.at("reference").get<std::size_t>();
  if (declared->levels.empty() || declared->reference > declared->levels.size() ||
      declared->width() == 0)
    throw RunError("the bindings of inputs to columns name no level");
  column.categorical = std::move(declared);
  return column;
}

}  // namespace

std::string missing_word(Missing missing) {
  static constexpr const char* words[] = {"error", "drop", "nan"};
  return words[static_cast<std::size_t>(missing)];
}

std::string binding_text(const Bindings& bindings) {
  json inputs = json::object();
  for (const auto& [input, columns] : bindings.columns) {
    inputs[input] = json::array();
    for (const BoundColumn& column : columns) inputs[input].push_back(column_json(column));
  }
  return json_line({{"inputs", std::move(inputs)}, {"missing", missing_word(bindings.missing)}});
}

Bindings parse_bindings(std::string_view text) {
  Bindings bindings;
  try {
    const json written = parse_json(text, 8);
    for (const auto& [input, columns] : written.at("inputs").items()) {
      for (const json& column : columns) bindings.columns[input].push_back(column_of(column));
    }
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
