#include "cli/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "starfold/data/memory.h"
#include "starfold/data/npy.h"
#include "starfold/data/simulate.h"

namespace starfold::cli {
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

Tensor setting_value(const std::string& name, const std::string& text) {
  if (text[0] == '@') return read_npy(text.substr(1), plan_memory(0).records);
  if (text == "nan" || text == "inf" || text == "-inf") return tensor_from_json(text, name);
  constexpr int deepest = 32;
  const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > deepest) throw StudyError("--set: an array is nested too deeply");
    return true;
  };
  const nlohmann::json json = nlohmann::json::parse(text, shallow, false);
  if (json.is_discarded())
    throw StudyError(
        fmt::format("--set {}: {} is neither a number, a JSON array nor @file.npy", name, text));
  return tensor_from_json(json, name);
}

void add_client(Study& study, const std::string& text) {
  const auto [name, path] = name_and_value(text, "--client", "oslo=oslo.csv");
  for (const StudyClient& other : study.clients) {
    if (other.name == name) throw StudyError(fmt::format("two clients are named {}", name));
  }
  study.clients.push_back({name, {path, {}, {}, {}}});
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

bool is_study(const std::string& file) {
  return std::filesystem::path(file).extension() == ".toml";
}

Study read_study(const std::string& file) {
  constexpr std::size_t most = std::size_t{1} << 24U;
  std::ifstream in(file, std::ios::binary);
  std::string text(most + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || in.gcount() == 0) throw StudyError(fmt::format("{} cannot be read", file));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > most) throw StudyError(fmt::format("{} is too large for a study", file));
  return parse_study(text, file);
}

}  // namespace

Study make_study(const RunArguments& arguments) {
  Study study;
  if (is_study(arguments.file)) study = read_study(arguments.file);
  if (study.program.empty()) study.program = arguments.file;
  for (const std::string& text : arguments.clients) add_client(study, text);
  add_options(study.bindings, arguments.bindings, "--bind", parse_binding);
  add_options(study.values, arguments.settings, "--set", [](const std::string& text) {
    auto [name, value] = name_and_value(text, "--set", "ridge=0.1");
    Tensor tensor = setting_value(name, value);
    return std::pair(std::move(name), std::move(tensor));
  });
  if (!arguments.missing.empty()) study.missing = parse_missing(arguments.missing);
  if (!arguments.memory.empty()) study.memory = parse_memory(arguments.memory);
  if (!arguments.simulate.empty()) study.simulation = arguments.simulate;
  if (!arguments.out.empty()) study.out = arguments.out;
  if (arguments.threads > 0) study.threads = arguments.threads;
  if (!study.clients.empty() && !study.simulation.empty())
    throw StudyError("a run has clients with data or simulated ones, not both");
  if (!arguments.simulate.empty() && !(arguments.bindings.empty() && arguments.missing.empty()))
    throw StudyError(
        "--bind and --missing are for clients with data; simulated ones have no columns");
  if (study.clients.empty() && study.simulation.empty()) {
    throw StudyError(
        study.file.empty()
            ? "no client is given; add --client NAME=PATH for each, or --simulate "
              "clients=1000,records=poisson(20)"
            : fmt::format("{}: no client is given; add a section [[client]] for each", study.file));
  }
  return study;
}

int threads_of(const Study& study) {
  return study.threads > 0 ? study.threads
                           : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::vector<Pack> simulate_clients(const Study& study, const ir::Program& program,
                                   const Settings& settings) {
  std::vector<Pack> packs;
  packs.push_back(simulate(program, parse_simulation(study.simulation),
                           bind_settings(program, settings), plan_memory(study.memory).records,
                           threads_of(study)));
  return packs;
}

std::vector<Client> load_clients(const Study& study, const ir::Program& program,
                                 std::map<std::string, std::vector<std::string>>& columns) {
  const int threads = threads_of(study);
  const MemoryPlan memory = plan_memory(study.memory);
  Tables tables({memory.reader, memory.records});
  std::vector<DataSource> sources;
  for (const StudyClient& client : study.clients)
    sources.push_back(open_source(program, client.name, client.data, tables));
  const ColumnPlan plan = plan_columns(program, sources, study.bindings, study.categoricals);
  for (const auto& [input, bound] : plan) columns[input] = column_names(bound);
  std::vector<Client> clients;
  for (const DataSource& source : sources) {
    clients.push_back(load_client(program, source, plan, {study.missing, threads}, tables.room()));
  }
  return clients;
}

}  // namespace starfold::cli
