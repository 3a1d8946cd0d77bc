#include "starfold/toml/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "starfold/base/suggest.h"
#include "starfold/base/usage_error.h"
#include "starfold/base/utf8.h"
#include "starfold/toml/depth.h"

namespace starfold {

toml::table parse_toml(std::string_view text, const std::string& file) {
  constexpr std::size_t deepest = 64;
  if (key_depth(text) > deepest)
    throw UsageError(fmt::format("{}: a key has more than {} parts", printable(file), deepest));
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw UsageError(
        fmt::format("{}:{}: {}", file, error.source().begin.line, printable(error.description())));
  }
}

const char* type_name(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  if (node.is_string()) return "a string";
  if (node.is_integer()) return "an integer";
  if (node.is_floating_point()) return "a number";
  if (node.is_boolean()) return "true or false";
  return "a date or time";
}

TomlReader::TomlReader(std::string file, std::string whole)
    : file_(std::move(file)),
      whole_(std::move(whole)),
      folder_(std::filesystem::path(file_).parent_path()) {}

void TomlReader::fail(const toml::node& at, const std::string& message) const {
  throw UsageError(fmt::format("{}:{}: {}", file_, at.source().begin.line, message));
}

void TomlReader::only(const toml::table& table, const std::string& where,
                      const std::vector<std::string>& keys) const {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    const std::string suggestion = nearest(name, keys);
    throw UsageError(fmt::format("{}:{}: {} has no key {}; {}", file_, key.source().begin.line,
                                 where.empty() ? whole_ : "[" + where + "]", printable(name),
                                 suggestion.empty()
                                     ? fmt::format("it may have {}", fmt::join(keys, ", "))
                                     : fmt::format("did you mean {}?", suggestion)));
  }
}

const toml::table& TomlReader::table(const toml::node& node, const std::string& name) const {
  if (!node.is_table())
    fail(node, fmt::format("{} must be a section [{}], not {}", name, name, type_name(node)));
  return *node.as_table();
}

std::string TomlReader::string(const toml::node& node, const std::string& name) const {
  if (!node.is_string())
    fail(node, fmt::format("{} must be a string, not {}", name, type_name(node)));
  return node.as_string()->get();
}

std::string TomlReader::word(const toml::node& node, const std::string& name,
                             const std::vector<std::string>& words) const {
  std::string written = string(node, name);
  if (std::find(words.begin(), words.end(), written) == words.end())
    fail(node, fmt::format("{} must be \"{}\", not {}", name, fmt::join(words, "\" or \""),
                           printable(written)));
  return written;
}

std::vector<std::string> TomlReader::strings(const toml::node& node,
                                             const std::string& name) const {
  if (!node.is_array() || node.as_array()->empty())
    fail(node, fmt::format("{} must be a list of strings, not {}", name,
                           node.is_array() ? "an empty one" : type_name(node)));
  std::vector<std::string> result;
  std::set<std::string> seen;
  for (const toml::node& entry : *node.as_array()) {
    result.push_back(string(entry, fmt::format("each entry of {}", name)));
    if (!seen.insert(result.back()).second)
      fail(entry, fmt::format("{} names {} twice", name, printable(result.back())));
  }
  return result;
}

bool TomlReader::boolean(const toml::node& node, const std::string& name) const {
  if (!node.is_boolean())
    fail(node, fmt::format("{} must be true or false, not {}", name, type_name(node)));
  return node.as_boolean()->get();
}

std::int64_t TomlReader::integer(const toml::node& node, const std::string& name,
                                 std::int64_t least) const {
  if (!node.is_integer())
    fail(node, fmt::format("{} must be an integer, not {}", name, type_name(node)));
  if (node.as_integer()->get() < least)
    fail(node, fmt::format("{} must be at least {}", name, least));
  return node.as_integer()->get();
}

double TomlReader::number(const toml::node& node, const std::string& name) const {
  if (!node.is_integer() && !node.is_floating_point())
    fail(node, fmt::format("{} must be a number, not {}", name, type_name(node)));
  const double number = node.is_integer() ? static_cast<double>(node.as_integer()->get())
                                          : node.as_floating_point()->get();
  if (!std::isfinite(number)) fail(node, fmt::format("{} must be a finite number", name));
  return number;
}

std::string TomlReader::path(const std::string& written) const {
  if (written.empty() || folder_.empty() || std::filesystem::path(written).is_absolute())
    return written;
  return (folder_ / written).lexically_normal().string();
}

}  // namespace starfold
