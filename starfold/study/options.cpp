#include "starfold/study/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "starfold/base/json.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/data/memory.h"
#include "starfold/data/text/values.h"
#include "starfold/study/output/files.h"

namespace starfold {
namespace {

std::pair<std::string, std::string> name_and_value(const std::string& text, const char* option,
                                                   const char* example) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    throw StudyError(fmt::format("{} takes NAME=VALUE, for example {} {}; not {}", option, option,
                                 example, text));
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

// A number or a nested JSON array of numbers, all rows of equal length.
Tensor tensor_from_json(const nlohmann::json& json, const std::string& name) {
  if (json.is_number()) return Tensor::scalar(json.get<double>());
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    if (text == "nan") return Tensor::scalar(std::numeric_limits<double>::quiet_NaN());
    if (text == "inf" || text == "-inf")
      return Tensor::scalar(text[0] == '-' ? -HUGE_VAL : HUGE_VAL);
  }
  if (!json.is_array() || json.empty())
    throw StudyError(fmt::format("--set {}: a number or an array of numbers is needed", name));
  Tensor whole;
  whole.data.clear();
  bool first = true;
  for (const nlohmann::json& entry : json) {
    const Tensor part = tensor_from_json(entry, name);
    if (!first && part.shape != whole.shape)
      throw StudyError(fmt::format("--set {}: the rows of the array differ in length", name));
    whole.shape = part.shape;
    whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
    first = false;
  }
  whole.shape.insert(whole.shape.begin(), static_cast<std::int64_t>(json.size()));
  return whole;
}

// StudyError when a whole number in the text has no double that is equal to it.
void check_whole_numbers(std::string_view text, const std::string& name) {
  constexpr std::string_view signs = "+-.0123456789eE";
  double ignored = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of(signs, at), text.size());
    if (parse_number(text.substr(at, end - at), ignored) == NumberFault::not_exact)
      throw StudyError(
          fmt::format("--set {}: a whole number is given that no double is equal to; numbers are "
                      "doubles, which hold whole numbers up to 2^53",
                      name));
    at = end + 1;
  }
}

Tensor setting_value(const std::string& name, const std::string& text) {
  if (text == "nan" || text == "inf" || text == "-inf") return tensor_from_json(text, name);
  const nlohmann::json json = parse_json(text, 32);
  if (json.is_discarded())
    throw StudyError(
        fmt::format("--set {}: what is given is neither a number, a JSON array nor @file.npy, or "
                    "is nested too deeply",
                    name));
  check_whole_numbers(text, name);
  return tensor_from_json(json, name);
}

void add_client(Study& study, const std::string& text) {
  const auto [name, path] = name_and_value(text, "--client", "oslo=oslo.csv");
  for (const StudyClient& other : study.clients) {
    if (other.name == name) throw StudyError(fmt::format("two clients are named {}", name));
  }
  study.clients.push_back({name, {path, {}, {}, {}, {}}});
}

std::pair<std::string, ColumnChoice> parse_binding(const std::string& text) {
  auto [input, columns] = name_and_value(text, "--bind", "x=age,bmi");
  ColumnChoice choice;
  choice.rest = columns == "*";
  std::istringstream parts(columns);
  std::string part;
  while (!choice.rest && std::getline(parts, part, ',')) choice.columns.push_back(part);
  return {std::move(input), std::move(choice)};
}

// Levels in their order; the first is the reference.
std::pair<std::string, std::shared_ptr<const Categorical>> parse_levels(const std::string& text) {
  auto [column, list] = name_and_value(text, "--levels", "sex=f,m");
  auto declared = std::make_shared<Categorical>();
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto& known = declared->levels;
    if (std::find(known.begin(), known.end(), part) != known.end())
      throw StudyError(fmt::format("--levels {} names a level twice", column));
    declared->levels.push_back(part);
  }
  if (declared->levels.size() < 2)
    throw StudyError(fmt::format("--levels {}: a factor has at least two levels", column));
  return {std::move(column), std::move(declared)};
}

// Adds what options say; each may be said once, and wins over the study.
template <typename Value, typename Parse>
void add_options(std::map<std::string, Value>& into, const std::vector<std::string>& written,
                 const char* option, Parse parse) {
  std::map<std::string, Value> parsed;
  for (const std::string& text : written) {
    auto [name, value] = parse(text);
    if (!parsed.emplace(name, std::move(value)).second)
      throw StudyError(fmt::format("{} names {} twice", option, name));
  }
  parsed.merge(into);
  into = std::move(parsed);
}

// What --set says wins over the study. Files are read when it is known how much they may take.
void add_values(Study& study, const std::vector<std::string>& settings) {
  add_options(study.values, settings, "--set", [&](const std::string& text) {
    auto [name, value] = name_and_value(text, "--set", "ridge=0.1");
    study.value_files.erase(name);
    const bool file = value[0] == '@';
    if (file) study.value_files.emplace(name, value.substr(1));
    return std::pair(std::move(name), file ? Tensor() : setting_value(name, value));
  });
  std::int64_t room = plan_memory(study.memory).values;
  for (const auto& [name, file] : study.value_files) {
    Tensor& value = study.values[name] = read_npy(file, room);
    room -= value.count() * static_cast<std::int64_t>(sizeof(double));
  }
}

// What options say of how files are written is said of all clients.
void set_dialects(Study& study, const StudyOptions& options) {
  const std::pair<const char*, const std::string&> single[] = {{"delimiter", options.delimiter},
                                                               {"decimal", options.decimal},
                                                               {"encoding", options.encoding},
                                                               {"dates", options.dates},
                                                               {"sheet", options.sheet}};
  for (StudyClient& client : study.clients) {
    Dialect& dialect = client.data.dialect;
    if (!options.na.empty()) dialect.na.clear();
    for (const std::string& word : options.na) set_dialect(dialect, "na", word);
    for (const auto& [key, value] : single) {
      if (!value.empty()) set_dialect(dialect, key, value);
    }
  }
}

Study read_study(const std::string& file) {
  constexpr std::size_t most = std::size_t{1} << 24U;
  const std::string text = read_text(file, most);
  if (text.size() > most) throw StudyError(fmt::format("{} is too large for a study", file));
  return parse_study(text, file);
}

}  // namespace

bool is_study(const std::string& file) {
  return std::filesystem::path(file).extension() == ".toml";
}

Study make_study(const StudyOptions& options) {
  Study study;
  if (is_study(options.file)) study = read_study(options.file);
  if (study.program.empty()) study.program = options.file;
  for (const std::string& text : options.clients) add_client(study, text);
  set_dialects(study, options);
  add_options(study.bindings, options.bindings, "--bind", parse_binding);
  add_options(study.categoricals, options.levels, "--levels", parse_levels);
  if (!options.formula.empty()) {
    study.formula = options.formula;
    // It wins over what the study's file binds to the same inputs.
    for (const char* input : {"x", "y"}) {
      if (std::none_of(options.bindings.begin(), options.bindings.end(), [&](const auto& text) {
            return text.starts_with(fmt::format("{}=", input));
          }))
        study.bindings.erase(input);
    }
  }
  if (!options.missing.empty()) study.missing = parse_missing(options.missing);
  if (!options.memory.empty()) study.memory = parse_memory(options.memory);
  add_values(study, options.settings);
  if (!options.simulate.empty()) study.simulation = options.simulate;
  if (!options.out.empty()) study.out = options.out;
  if (options.threads > 0) study.threads = options.threads;
  if (options.exact) study.exact = true;
  if (options.client_details) study.client_details = true;
  if (options.sample > 0) study.federation.sample.clients = options.sample;
  if (!options.sample_seed.empty()) {
    double seed = 0;
    if (parse_number(options.sample_seed, seed) != NumberFault::none || seed != std::floor(seed))
      throw StudyError("--sample-seed takes a whole number");
    study.federation.sample.seed = seed;
  }
  if (!study.clients.empty() && !study.simulation.empty())
    throw StudyError("a run has clients with data or simulated ones, not both");
  if (!study.formula.empty() && !study.simulation.empty())
    throw StudyError("a formula is for clients with data; simulated ones have no columns");
  if (!options.simulate.empty() && !(options.bindings.empty() && options.missing.empty()))
    throw StudyError(
        "--bind and --missing are for clients with data; simulated ones have no columns");
  return study;
}

}  // namespace starfold
