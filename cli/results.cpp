#include "cli/results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/data/npy.h"
#include "starfold/page/number.h"

namespace starfold::cli {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& content) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  if (!out) {
    const std::error_code reason(errno != 0 ? errno : EIO, std::generic_category());
    throw fs::filesystem_error("write", path, reason);
  }
}

nlohmann::json clients_json(const RunReport& report) {
  nlohmann::json clients = nlohmann::json::array();
  for (const ClientReport& client : report.clients) {
    clients.push_back({{"name", client.name},
                       {"records", client.records},
                       {"bytes_sent", client.bytes_sent},
                       {"bytes_received", client.bytes_received}});
  }
  return clients;
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
  static constexpr const char* missing[] = {"error", "drop", "nan"};
  nlohmann::json json = {{"missing", missing[static_cast<std::size_t>(study.missing)]}};
  if (study.memory > 0) json["memory"] = study.memory;
  if (study.threads > 0) json["threads"] = study.threads;
  return json;
}

// Names come from outside and need not be text.
std::string dump(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

nlohmann::json run_json(const RunReport& report, const CompiledProgram& program,
                        const Study& study) {
  nlohmann::json run = report_json(report);
  run.erase("outputs");
  run["program"] = shown_path(program.text.name);
  if (!study.file.empty()) run["study"] = shown_path(study.file);
  if (!study.simulation.empty()) run["simulation"] = study.simulation;
  run["program_sha256"] = sha256_hex(program.text.text);
  for (const auto& [name, text] : program.text.modules) run["modules"][name] = sha256_hex(text);
  run["plan"] = program.hash;
  run["versions"]["starfold"] = STARFOLD_VERSION;
  const std::string duckdb = loaded_duckdb_version();
  if (!duckdb.empty()) run["versions"]["duckdb"] = duckdb;
  for (std::size_t i = 0; i < report.clients.size(); ++i)
    run["clients"][i]["numbers_sent"] = report.clients[i].numbers_sent;
  run["sizes"] = report.sizes;
  run["columns"] = report.columns;
  run["settings"] = nlohmann::json::object();
  for (const auto& [name, value] : study.values) run["settings"][name] = tensor_json(value);
  run["options"] = options_json(study);
  for (std::size_t i = 0; i < study.clients.size() && i < run["clients"].size(); ++i)
    run["clients"][i]["data"] = data_json(study.clients[i].data);
  run["times"] = {{"compile", report.times.compile},
                  {"load", report.times.load},
                  {"clients", report.times.clients},
                  {"server", report.times.server}};
  return run;
}

// Whether results may go where something is already: an empty folder, or earlier results.
bool replaceable(const fs::path& target) {
  std::error_code error;
  if (!fs::is_directory(target, error)) return false;
  if (fs::is_empty(target, error)) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(target, error)) {
    const fs::path name = entry.path().filename();
    const bool ours = name == "run.json" || name == "outputs.json" || name == "report.html" ||
                      name.extension() == ".npy";
    if (!ours || !entry.is_regular_file(error)) return false;
  }
  return !error && fs::exists(target / "run.json", error);
}

fs::path target_of(const std::string& folder) {
  const fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();  // results/ is results
}

fs::path aside_of(const fs::path& target) {
  return target.string() + fmt::format(".partial-{}", getpid());
}

// Puts a folder into the place of another, or of none.
void move_into_place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(to, error)) {
    fs::rename(from, to);
    return;
  }
  // Exchanged in one step, so that there is always one whole set of results.
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    const fs::path old = from.string() + "-old";
    fs::rename(to, old);
    fs::rename(from, to, error);
    if (error) {
      std::error_code ignored;
      fs::rename(old, to, ignored);
      throw fs::filesystem_error("rename", to, error);
    }
    fs::remove_all(old, error);
  }
  fs::remove_all(from, error);
}

}  // namespace

nlohmann::json number_json(double value) {
  if (std::isfinite(value)) return value;
  return page::exact(value);
}

nlohmann::json report_json(const RunReport& report) {
  nlohmann::json traces = nlohmann::json::object();
  for (const auto& [name, values] : report.results.traces) {
    traces[name] = nlohmann::json::array();
    for (const double value : values) traces[name].push_back(number_json(value));
  }
  return {{"outputs", outputs_json(report.results)},
          {"traces", std::move(traces)},
          {"iterations", report.results.iterations},
          {"rounds", report.rounds},
          {"clients", clients_json(report)},
          {"packed_clients", report.packed},
          {"seconds", report.seconds}};
}

void check_results_folder(const std::string& folder) {
  const fs::path target = target_of(folder);
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error)) && !replaceable(target)) {
    throw RunError(fmt::format(
        "{} exists and holds something other than earlier results; choose another folder", folder));
  }
  // A try is the only sure way to know, and better made before a long run than after it.
  const fs::path aside = aside_of(target);
  std::vector<fs::path> made = {aside};  // folders that are not there yet, the innermost first
  while (made.back().has_parent_path() && !fs::exists(made.back().parent_path(), error))
    made.push_back(made.back().parent_path());
  fs::create_directories(aside, error);
  const std::error_code failure = error;
  for (const fs::path& folder_made : made) fs::remove(folder_made, error);
  if (failure) throw RunError(fmt::format("{} cannot be written: {}", folder, failure.message()));
}

void write_results(const std::string& folder, const RunReport& report,
                   const CompiledProgram& program, const Study& study) {
  const fs::path target = target_of(folder);
  const fs::path aside = aside_of(target);
  std::error_code error;
  try {
    fs::create_directories(aside);
    write_file(aside / "outputs.json", outputs_json(report.results).dump(2) + "\n");
    for (const auto& [name, tensor] : report.results.outputs)
      write_file(aside / (name + ".npy"), format_npy(tensor));
    write_file(aside / "run.json", dump(run_json(report, program, study)));
    write_file(aside / "report.html", report_html(report, program));
    move_into_place(aside, target);
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(aside, error);
    throw RunError(fmt::format("{} cannot be written: {}", folder, failure.code().message()));
  }
}

}  // namespace starfold::cli
