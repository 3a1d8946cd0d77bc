// starfold run: a program over local client files.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/load.h"
#include "cli/results.h"
#include "starfold/base/error.h"
#include "starfold/data/npy.h"
#include "starfold/data/source.h"
#include "starfold/federation/local.h"

namespace starfold::cli {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> clients;
  std::vector<std::string> bindings;
  std::vector<std::string> settings;
  std::string out;
  bool json = false;
  bool reference = false;
  int threads = 0;
};

// What the user typed is wrong: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::pair<std::string, std::string> name_and_value(const std::string& text, const char* option, const char* example) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    throw UsageError(fmt::format("{} takes NAME=VALUE, for example {} {}; not {}", option, option, example, text));
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

ColumnBindings parse_bindings(const std::vector<std::string>& written) {
  ColumnBindings bindings;
  for (const std::string& text : written) {
    const auto [input, columns] = name_and_value(text, "--bind", "x=age,bmi");
    ColumnChoice choice;
    choice.rest = columns == "*";
    std::istringstream parts(columns);
    std::string part;
    while (!choice.rest && std::getline(parts, part, ',')) choice.columns.push_back(part);
    if (!bindings.emplace(input, std::move(choice)).second) throw UsageError(fmt::format("--bind names input {} twice", input));
  }
  return bindings;
}

// A number or a nested JSON array of numbers, all rows of equal length.
Tensor tensor_from_json(const nlohmann::json& json, const std::string& name) {
  if (json.is_number()) return Tensor::scalar(json.get<double>());
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    if (text == "nan") return Tensor::scalar(std::numeric_limits<double>::quiet_NaN());
    if (text == "inf" || text == "-inf") return Tensor::scalar(text[0] == '-' ? -HUGE_VAL : HUGE_VAL);
  }
  if (!json.is_array() || json.empty()) throw UsageError(fmt::format("--set {}: a number or an array of numbers is needed", name));
  Tensor whole;
  whole.data.clear();
  bool first = true;
  for (const nlohmann::json& entry : json) {
    const Tensor part = tensor_from_json(entry, name);
    if (!first && part.shape != whole.shape) throw UsageError(fmt::format("--set {}: the rows of the array differ in length", name));
    whole.shape = part.shape;
    whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
    first = false;
  }
  whole.shape.insert(whole.shape.begin(), static_cast<std::int64_t>(json.size()));
  return whole;
}

Tensor setting_value(const std::string& name, const std::string& text) {
  if (text[0] == '@') return read_npy(text.substr(1));
  if (text == "nan" || text == "inf" || text == "-inf") return tensor_from_json(text, name);
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw UsageError(fmt::format("--set {}: {} is neither a number, a JSON array nor @file.npy", name, text));
  return tensor_from_json(json, name);
}

Settings parse_settings(const std::vector<std::string>& written, const ir::Program& program) {
  Settings settings;
  for (const std::string& text : written) {
    const auto [name, value] = name_and_value(text, "--set", "ridge=0.1");
    const auto is_name = [name = name](const auto& declared) { return declared.name == name; };
    const bool size = std::any_of(program.sizes.begin(), program.sizes.end(), is_name);
    Tensor tensor = setting_value(name, value);
    if (!size) {
      if (!settings.shared.emplace(name, std::move(tensor)).second) throw UsageError(fmt::format("--set names {} twice", name));
      continue;
    }
    const double number = tensor.item();
    if (!tensor.shape.empty() || !(number >= 1 && number <= 1e15) || number != std::floor(number)) {
      throw UsageError(fmt::format("--set {}: a size is a positive integer", name));
    }
    settings.sizes[name] = static_cast<std::int64_t>(number);
  }
  return settings;
}

std::vector<Client> load_clients(const Arguments& arguments, const ir::Program& program) {
  const ColumnBindings bindings = parse_bindings(arguments.bindings);
  std::vector<Client> clients;
  for (const std::string& text : arguments.clients) {
    const auto [name, path] = name_and_value(text, "--client", "oslo=oslo.npz");
    for (const Client& other : clients) {
      if (other.name == name) throw UsageError(fmt::format("two clients are named {}", name));
    }
    clients.push_back(bind_source(program, name, read_source(program, name, path), bindings));
  }
  if (clients.empty()) throw UsageError("no client is given; add --client NAME=PATH for each");
  return clients;
}

std::atomic<bool> stop_requested = false;

// The first Ctrl-C ends the run after the current round; a second one ends the process at once.
void on_interrupt(int) {
  stop_requested = true;
  std::signal(SIGINT, SIG_DFL);
}

// One line on a terminal, rewritten after every round; nothing where no one watches.
class ProgressLine {
 public:
  explicit ProgressLine(bool show) : show_(show) {}
  ~ProgressLine() {
    if (drawn_) fmt::print(stderr, "\r\033[K");
  }
  void operator()(const Progress& progress) {
    if (!show_ || progress.seconds - last_ < 0.05) return;
    last_ = progress.seconds;
    drawn_ = true;
    std::string line = fmt::format("round {}", progress.rounds);
    for (const auto& [name, values] : progress.results->traces) {
      if (!values.empty()) line += fmt::format("  {} {:.6g}", name, values.back());
    }
    fmt::print(stderr, "\r\033[K{}  {:.3g} s/round  {:.1f} s", line, progress.round_seconds, progress.seconds);
    std::fflush(stderr);
  }

 private:
  bool show_;
  bool drawn_ = false;
  double last_ = -1;
};

RunReport run_reference(const CompiledProgram& program, const std::vector<Client>& clients, const Settings& settings) {
  RunReport report;
  const auto start = std::chrono::steady_clock::now();
  report.results = evaluate_reference(program.compilation.program, clients, settings);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const Client& client : clients) {
    const auto counts = record_counts(program.compilation.program, client);
    report.clients.push_back({client.name, counts.empty() ? 0 : counts.begin()->second, 0, 0});
  }
  return report;
}

int run(const Arguments& arguments) {
  const std::shared_ptr<const CompiledProgram> program = load_program(arguments.file, arguments.json);
  if (!program) return exit_usage;
  if (!program->plan) return exit_refused;
  try {
    const Settings settings = parse_settings(arguments.settings, program->compilation.program);
    std::vector<Client> clients = load_clients(arguments, program->compilation.program);
    RunReport report;
    if (arguments.reference) {
      report = run_reference(*program, clients, settings);
    } else {
      std::signal(SIGINT, on_interrupt);
      auto line = std::make_shared<ProgressLine>(!arguments.json && isatty(STDERR_FILENO) != 0);
      RunOptions options;
      options.threads = arguments.threads;
      options.stop = &stop_requested;
      options.watch = [line](const Progress& progress) { (*line)(progress); };
      report = run_local(program, std::move(clients), settings, options);
    }
    if (!arguments.out.empty()) write_results(arguments.out, report, *program);
    fmt::print("{}", arguments.json ? report_json(report).dump() + "\n" : report_text(report, *program));
    return exit_done;
  } catch (const UsageError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return exit_usage;
  } catch (const RunError& error) {
    print_run_error(error, program->compilation.sources, arguments.json);
    return exit_failed;
  }
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("run", "run a program over local client files");
  command->add_option("FILE", arguments->file, "a program, or the name of a library program (see `starfold lib`)")->required();
  command->add_option("--client", arguments->clients, "NAME=PATH: a client and its data (.npz, .npy, a folder of .npy); repeat for each");
  command->add_option("--bind", arguments->bindings, "x=age,bmi: the columns of an input; 'x=*': every column not bound elsewhere");
  command->add_option("--set", arguments->settings, "ridge=0.1: a shared input or size; a number, a JSON array, or @file.npy");
  command->add_option("--out", arguments->out, "a folder for outputs.json, one .npy per output, run.json and report.html");
  command->add_option("--threads", arguments->threads, "how many threads to use (default: all)")->check(CLI::Range(1, 1024));
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->add_flag("--reference", arguments->reference, "evaluate on the pooled records instead (the definition; slow)");
  command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace starfold::cli
