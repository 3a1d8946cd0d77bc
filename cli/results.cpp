#include "cli/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/data/npy.h"
#include "starfold/page/pages.h"

namespace starfold::cli {
namespace {

namespace fs = std::filesystem;

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{:.8g}", value);
}

// One row of numbers, right-aligned under each other.
std::string matrix_text(const Tensor& tensor, std::size_t offset, std::int64_t rows,
                        std::int64_t columns) {
  std::size_t width = 0;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    width = std::max(width, number_text(tensor.data[offset + static_cast<std::size_t>(i)]).size());
  }
  std::string text;
  for (std::int64_t r = 0; r < rows; ++r) {
    text += "   ";
    for (std::int64_t c = 0; c < columns; ++c) {
      text += fmt::format(
          " {:>{}}", number_text(tensor.data[offset + static_cast<std::size_t>(r * columns + c)]),
          width + 1);
    }
    text += "\n";
  }
  return text;
}

std::string tensor_text(const std::string& name, const Tensor& tensor) {
  constexpr std::int64_t most = 400;  // larger ones are better read from a file
  if (tensor.shape.empty()) return fmt::format("{} = {}\n", name, number_text(tensor.item()));
  std::string shape;
  for (const std::int64_t extent : tensor.shape)
    shape += (shape.empty() ? "" : " x ") + std::to_string(extent);
  std::string text = fmt::format("{} [{}]\n", name, shape);
  if (tensor.count() > most) return text + "    (large; use --out or --json)\n";
  if (tensor.rank() == 1) return text + matrix_text(tensor, 0, tensor.shape[0], 1);
  const std::int64_t columns = tensor.shape.back();
  const std::int64_t rows = tensor.shape[tensor.rank() - 2];
  for (std::int64_t slab = 0; slab < tensor.count() / (rows * columns); ++slab) {
    if (slab > 0) text += "\n";
    text += matrix_text(tensor, static_cast<std::size_t>(slab * rows * columns), rows, columns);
  }
  return text;
}

void write_file(const fs::path& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.flush();
  if (!out) throw RunError(fmt::format("{} cannot be written", path.string()));
}

nlohmann::json outputs_json(const Results& results) {
  nlohmann::json outputs = nlohmann::json::object();
  for (const auto& [name, tensor] : results.outputs) {
    nlohmann::json data = nlohmann::json::array();
    for (const double value : tensor.data) data.push_back(number_json(value));
    outputs[name] = {{"shape", tensor.shape}, {"data", std::move(data)}};
  }
  return outputs;
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

}  // namespace

nlohmann::json number_json(double value) {
  if (std::isfinite(value)) return value;
  return number_text(value);
}

nlohmann::json report_json(const RunReport& report) {
  nlohmann::json traces = nlohmann::json::object();
  for (const auto& [name, values] : report.results.traces) {
    traces[name] = nlohmann::json::array();
    for (const double value : values) traces[name].push_back(number_json(value));
  }
  return {{"outputs", outputs_json(report.results)}, {"traces", std::move(traces)},
          {"iterations", report.results.iterations}, {"rounds", report.rounds},
          {"clients", clients_json(report)},         {"seconds", report.seconds}};
}

std::string report_text(const RunReport& report, const CompiledProgram& program) {
  std::string text;
  for (const ir::Output& output : program.plan->program.outputs) {
    const auto found = report.results.outputs.find(output.name);
    if (found != report.results.outputs.end()) text += tensor_text(output.name, found->second);
  }
  for (const auto& [name, values] : report.results.traces) {
    if (!values.empty())
      text += fmt::format("trace {}: {} -> {} ({} values)\n", name, number_text(values.front()),
                          number_text(values.back()), values.size());
  }
  std::string iterations;
  for (const std::int64_t count : report.results.iterations)
    iterations += fmt::format("{}{}", iterations.empty() ? "" : ", ", count);
  std::int64_t records = 0;
  std::uint64_t most = 0;
  for (const ClientReport& client : report.clients) {
    records += client.records;
    most = std::max(most, client.bytes_sent);
  }
  text += fmt::format(
      "\n{} {}{}, {} {} with {} records, at most {} bytes sent by a client, {:.3g} s\n",
      report.rounds, report.rounds == 1 ? "round" : "rounds",
      iterations.empty() ? "" : fmt::format(" ({} iterations)", iterations), report.clients.size(),
      report.clients.size() == 1 ? "client" : "clients", records, most, report.seconds);
  return text;
}

void write_results(const std::string& folder, const RunReport& report,
                   const CompiledProgram& program) {
  const fs::path target = fs::path(folder).lexically_normal();
  std::error_code error;
  const bool exists = fs::exists(target, error);
  if (exists && (!fs::is_directory(target, error) ||
                 (!fs::is_empty(target, error) && !fs::exists(target / "run.json", error)))) {
    throw RunError(fmt::format(
        "{} exists and holds something other than earlier results; choose another folder", folder));
  }
  const fs::path aside = target.string() + fmt::format(".partial-{}", getpid());
  try {
    fs::create_directories(aside);
    write_file(aside / "outputs.json", outputs_json(report.results).dump(2) + "\n");
    for (const auto& [name, tensor] : report.results.outputs)
      write_file(aside / (name + ".npy"), format_npy(tensor));
    nlohmann::json run = report_json(report);
    run.erase("outputs");
    run["program"] = program.text.name;
    run["plan"] = program.hash;
    run["version"] = STARFOLD_VERSION;
    write_file(aside / "run.json", run.dump(2) + "\n");
    write_file(aside / "report.html", report_html(report, program));
    if (exists) fs::remove_all(target);
    fs::rename(aside, target);
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(aside, error);
    throw RunError(fmt::format("{} cannot be written: {}", folder, failure.code().message()));
  } catch (const RunError&) {
    fs::remove_all(aside, error);
    throw;
  }
}

}  // namespace starfold::cli
