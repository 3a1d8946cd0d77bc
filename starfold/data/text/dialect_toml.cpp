#include "starfold/data/text/dialect_toml.h"

#include <fmt/format.h>

#include "starfold/base/usage_error.h"

namespace starfold {

void read_dialect(const TomlReader& reader, const toml::table& section, const std::string& where,
                  Dialect& dialect) {
  for (const char* key : dialect_keys) {
    const toml::node* node = section.get(key);
    if (node == nullptr) continue;
    const std::string name = fmt::format("{}.{}", where, key);
    std::vector<std::string> values;
    if (key == std::string_view("na") && !node->is_string()) {
      values = reader.strings(*node, name);
    } else {
      values = {reader.string(*node, name)};
    }
    if (key == std::string_view("na")) dialect.na.clear();
    try {
      for (const std::string& value : values) set_dialect(dialect, key, value);
    } catch (const UsageError& error) {
      reader.fail(*node, fmt::format("{}: {}", name, error.what()));
    }
  }
}

std::vector<std::string> with_dialect_keys(std::vector<std::string> keys) {
  keys.insert(keys.end(), std::begin(dialect_keys), std::end(dialect_keys));
  return keys;
}

}  // namespace starfold
