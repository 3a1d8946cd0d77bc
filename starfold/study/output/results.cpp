#include "starfold/study/output/results.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "starfold/base/hash.h"
#include "starfold/base/json.h"
#include "starfold/page/number.h"
#include "starfold/page/pages.h"
#include "starfold/study/output/seal.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

// Non-finite numbers are the strings "nan", "inf", "-inf".
nlohmann::json number_json(double value) {
  if (std::isfinite(value)) return value;
  return page::exact(value);
}

nlohmann::json tensor_json(const Tensor& tensor) {
  nlohmann::json data = nlohmann::json::array();
  for (const double value : tensor.data) data.push_back(number_json(value));
  return {{"shape", tensor.shape}, {"data", std::move(data)}};
}

nlohmann::json outputs_json(const Results& results) {
  nlohmann::json outputs = nlohmann::json::object();
  for (const auto& [name, tensor] : results.outputs) outputs[name] = tensor_json(tensor);
  return outputs;
}

nlohmann::json traces_json(const Results& results) {
  nlohmann::json traces = nlohmann::json::object();
  for (const auto& [name, values] : results.traces) {
    traces[name] = nlohmann::json::array();
    for (const double value : values) traces[name].push_back(number_json(value));
  }
  return traces;
}

nlohmann::json client_json(const ClientReport& client) {
  const bool known = client.records != unknown_records;
  return {{"name", client.name},
          {"records", known ? nlohmann::json(client.records) : nlohmann::json()},
          {"bytes_sent", client.bytes_sent},
          {"bytes_received", client.bytes_received}};
}

// A file by its name: where it lies is nobody's business. Library programs keep their place.
std::string shown_path(const std::string& path) {
  return path.starts_with("lib/") ? path : fs::path(path).filename().string();
}

// A client's data. A query may hold more than names.
nlohmann::json data_json(const TableLocation& data) {
  nlohmann::json json = nlohmann::json::object();
  std::error_code error;
  if (!data.path.empty()) json["file"] = shown_path(data.path);
  const auto bytes = fs::file_size(data.path, error);
  if (!data.path.empty() && !error) json["bytes"] = bytes;
  if (!data.query.empty()) json["query_sha256"] = sha256_hex(data.query);
  return json;
}

nlohmann::json options_json(const Study& study) {
  nlohmann::json json = {{"missing", missing_word(study.missing)}};
  if (study.memory > 0) json["memory"] = study.memory;
  if (study.threads > 0) json["threads"] = study.threads;
  if (study.exact) json["exact"] = true;
  if (study.client_details) json["client_details"] = true;
  if (study.federation.sample.clients > 0) {
    json["sample"] = study.federation.sample.clients;
    json["sample_seed"] = static_cast<std::int64_t>(study.federation.sample.seed);
  }
  return json;
}

// How much data each client has is its own business: in a file that is passed on only where the study says so.
nlohmann::json clients_json(const StudyRun& run) {
  nlohmann::json clients = nlohmann::json::array();
  for (const ClientReport& client : run.report.clients) {
    nlohmann::json json = client_json(client);
    json["numbers_sent"] = client.numbers_sent;
    if (!run.report.client_details) {
      json.erase("records");
    } else if (clients.size() < run.study.clients.size()) {
      json["dropped"] = client.dropped;
      if (!client.missing.empty()) json["missing"] = client.missing;
      json["data"] = data_json(run.study.clients[clients.size()].data);
    }
    clients.push_back(std::move(json));
  }
  return clients;
}

// Of a run over nodes: its identity, and the clients that it went on without, with the rounds they took part in.
void add_federation(nlohmann::json& json, const RunReport& report) {
  if (report.run.empty()) return;
  json["run"] = report.run;
  json["departures"] = nlohmann::json::array();
  for (const Departure& departure : report.departures)
    json["departures"].push_back(
        {{"client", report.clients[departure.client].name}, {"rounds", departure.rounds}});
}

// What a private run promised, did and spent.
void add_privacy(nlohmann::json& json, const RunReport& report) {
  if (!report.privacy) return;
  const privacy::Report& done = *report.privacy;
  const privacy::Promise& promise = done.promise;
  nlohmann::json rounds = nlohmann::json::array();
  for (const privacy::Release& release : done.releases) {
    nlohmann::json merges = nlohmann::json::array();
    for (const privacy::PrivateMerge& merge : done.rounds[release.round].merges)
      merges.push_back({{"scale", merge.scale},
                        {"grid", merge.noise_grid()},
                        {"sensitivity", merge.sensitivity},
                        {"numbers", merge.numbers}});
    rounds.push_back({{"round", release.round + 1},
                      {"mechanism", done.mechanism()},
                      {"scale", release.scale},
                      {"grid", release.grid},
                      {"sensitivity", release.sensitivity},
                      {"epsilon", release.epsilon},
                      {"merges", std::move(merges)}});
  }
  json["privacy"] = {{"unit", to_string(promise.unit)},
                     {"neighbours", to_string(promise.neighbours)},
                     {"epsilon", done.epsilon},
                     {"delta", promise.delta},
                     {"at", to_string(promise.at)},
                     {"budget", {{"epsilon", promise.epsilon}, {"delta", promise.delta}}},
                     {"private", !done.predictable},
                     {"rounds", std::move(rounds)}};
}

// Where states were masked: over how many clients each sum is at least, how many must answer to unmask one, and whose word the
// keys rest on.
void add_secure_aggregation(nlohmann::json& json, const RunReport& report) {
  if (!report.group) return;
  const auto members = static_cast<std::int64_t>(report.group->members.size());
  json["secure_aggregation"] = {{"clients", members},
                                {"threshold", report.group->answers()},
                                {"minimum_clients", report.group->inputs()},
                                {"pinned_keys", report.pinned_keys}};
}

nlohmann::json records_json(const RunReport& report) {
  std::int64_t records = 0;
  std::int64_t dropped = 0;
  for (const ClientReport& client : report.clients) {
    if (client.records == unknown_records) return {};
    records += client.records;
    dropped += client.dropped;
  }
  return {{"used", records}, {"dropped", dropped}};
}

}  // namespace

std::string run_json(const StudyRun& run) {
  const RunReport& report = run.report;
  nlohmann::json clients = nlohmann::json::array();
  for (const ClientReport& client : report.clients) {
    clients.push_back(client_json(client));
    if (client.dropped > 0) clients.back()["dropped"] = client.dropped;
    if (!client.missing.empty()) clients.back()["missing"] = client.missing;
  }
  const ir::Program& typed = run.program->compilation.program;
  nlohmann::json json = {{"outputs", outputs_json(report.results)},
                         {"warnings", warnings(report, typed)},
                         {"traces", traces_json(report.results)},
                         {"iterations", report.results.iterations},
                         {"rounds", report.rounds},
                         {"clients", std::move(clients)},
                         {"packed_clients", report.packed},
                         {"seconds", report.seconds}};
  if (run.program->planning.exact) json["exact"] = true;
  add_federation(json, report);
  add_privacy(json, report);
  add_secure_aggregation(json, report);
  return json_line(json);
}

std::string outputs_file(const StudyRun& run) {
  return json_pretty(outputs_json(run.report.results));
}

std::string record_file(const StudyRun& run, const std::map<std::string, std::string>& hashes) {
  const RunReport& report = run.report;
  const ProgramText& text = run.program->text;
  nlohmann::json json = {{"program", shown_path(text.name)},
                         {"program_sha256", sha256_hex(text.text)},
                         {"plan", run.program->hash},
                         {"exact", run.program->planning.exact},
                         {"versions", run.versions},
                         {"sizes", report.sizes},
                         {"columns", report.columns},
                         {"warnings", warnings(report, run.program->compilation.program)},
                         {"settings", nlohmann::json::object()},
                         {"options", options_json(run.study)},
                         {"traces", traces_json(report.results)},
                         {"iterations", report.results.iterations},
                         {"rounds", report.rounds},
                         {"clients", clients_json(run)},
                         {"packed_clients", report.packed},
                         {"records", records_json(report)},
                         {"seconds", report.seconds}};
  add_federation(json, report);
  add_privacy(json, report);
  add_secure_aggregation(json, report);
  if (!report.formula.empty()) json["formula"] = report.formula;
  if (!run.study.file.empty()) json["study"] = shown_path(run.study.file);
  if (!run.study.simulation.empty()) json["simulation"] = run.study.simulation;
  for (const auto& [name, module] : text.modules) json["modules"][name] = sha256_hex(module);
  for (const auto& [name, value] : run.study.values) json["settings"][name] = tensor_json(value);
  json["times"] = {{"compile", report.times.compile},
                   {"load", report.times.load},
                   {"clients", report.times.clients},
                   {"server", report.times.server}};
  return sealed_record(std::move(json), hashes);
}

}  // namespace starfold
