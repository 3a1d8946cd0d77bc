// starfold run: a program over local client files.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/load.h"
#include "cli/request.h"
#include "cli/results.h"
#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/memory.h"
#include "starfold/federation/local.h"

namespace starfold::cli {
namespace {

struct Arguments : RunArguments {
  bool json = false;
  bool reference = false;
};

std::atomic<bool> stop_requested = false;

// The first Ctrl-C ends the run after the current round; a second one ends the process at once.
void on_interrupt(int) {
  stop_requested = true;
  if (isatty(STDERR_FILENO) != 0) {
    constexpr std::string_view words = "\nstopping after this round; Ctrl-C again stops at once\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, words.data(), words.size());
  }
  std::signal(SIGINT, SIG_DFL);
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One line on a terminal, rewritten after every round; nothing where no one watches.
class ProgressLine {
 public:
  explicit ProgressLine(bool show) : show_(show) {}
  ~ProgressLine() {
    if (drawn_) fmt::print(stderr, "\r\033[K");
  }
  void say(const char* what) {
    if (!show_) return;
    drawn_ = true;
    fmt::print(stderr, "\r\033[K{}", what);
    std::fflush(stderr);
  }
  void operator()(const Progress& progress) {
    if (!show_ || progress.seconds - last_ < 0.05) return;
    last_ = progress.seconds;
    drawn_ = true;
    std::string line = fmt::format("round {}", progress.rounds);
    for (const auto& [name, values] : progress.results->traces) {
      if (!values.empty()) line += fmt::format("  {} {:.6g}", name, values.back());
    }
    fmt::print(stderr, "\r\033[K{}  {:.3g} s/round  {:.1f} s", line, progress.round_seconds,
               progress.seconds);
    std::fflush(stderr);
  }

 private:
  bool show_;
  bool drawn_ = false;
  double last_ = -1;
};

RunReport run_reference(const CompiledProgram& program, std::vector<Pack>& packs,
                        const Settings& settings) {
  RunReport report;
  std::vector<Client> clients;
  for (Pack& pack : packs) {
    for (const PackedClient& client : pack.clients)
      report.clients.push_back({client.name, client.records, 0, 0});
    clients.push_back(std::move(pack.records));
  }
  const Stopwatch watch;
  report.results = evaluate_reference(program.compilation.program, clients, settings);
  report.seconds = watch.seconds();
  return report;
}

RunReport run_study(const std::shared_ptr<const CompiledProgram>& program, const Study& study,
                    const Arguments& arguments) {
  const ir::Program& typed = program->compilation.program;
  Settings settings = study_settings(study, typed);
  settings.memory = plan_memory(study.memory).values;
  std::map<std::string, std::vector<std::string>> columns;
  auto line = std::make_shared<ProgressLine>(!arguments.json && isatty(STDERR_FILENO) != 0);
  line->say("reading data");
  const Stopwatch loading;
  std::vector<Pack> packs = study.simulation.empty()
                                ? pack_clients(typed, load_clients(study, typed, columns))
                                : simulate_clients(study, typed, settings);
  const double load_seconds = loading.seconds();
  if (arguments.reference) {
    RunReport report = run_reference(*program, packs, settings);
    report.columns = std::move(columns);
    report.times.load = load_seconds;
    return report;
  }
  std::signal(SIGINT, on_interrupt);
  RunOptions options;
  options.threads = study.threads;
  options.stop = &stop_requested;
  options.watch = [line](const Progress& progress) { (*line)(progress); };
  RunReport report = run_packs(program, std::move(packs), settings, options);
  report.columns = std::move(columns);
  report.times.load = load_seconds;
  return report;
}

int run(const Arguments& arguments) {
  std::shared_ptr<const CompiledProgram> program;
  try {
    const Study study = make_study(arguments);
    const Stopwatch compiling;
    program = load_program(study.program, arguments.json);
    const double compile_seconds = compiling.seconds();
    if (!program) return exit_usage;
    if (!program->plan) return exit_refused;
    check_study(study, program->compilation.program);
    if (!study.out.empty()) check_results_folder(study.out);
    RunReport report = run_study(program, study, arguments);
    report.times.compile = compile_seconds;
    const std::string text =
        arguments.json
            ? report_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                  "\n"
            : report_text(report, *program);
    try {
      if (!study.out.empty()) write_results(study.out, report, *program, study);
    } catch (const RunError&) {
      if (!arguments.json) fmt::print("{}", text);  // what was computed is not lost
      throw;
    }
    fmt::print("{}", text);
    return exit_done;
  } catch (const StudyError& error) {
    fmt::print(stderr, "error: {}\n", printable_lines(error.what()));
    return exit_usage;
  } catch (const RunError& error) {
    print_run_error(error, program ? program->compilation.sources : SourceMap(), arguments.json);
    return exit_failed;
  }
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("run", "run a program over local client files, or a study file");
  command
      ->add_option(
          "FILE", arguments->file,
          "a program, the name of a library program (see `starfold lib`), or a study (.toml)")
      ->required();
  command->add_option("--client", arguments->clients,
                      "NAME=PATH: a client and its data (.csv, .parquet, .jsonl, .duckdb, .sqlite, "
                      ".npz, .npy, ...); repeat for each");
  command->add_option(
      "--simulate", arguments->simulate,
      "clients=1000000,records=poisson(20): made-up clients instead; y=bernoulli(0.3) "
      "says what an input holds, normal(0,1) otherwise; seed=7");
  command->add_option("--missing", arguments->missing,
                      "records with a missing value: error (the default), drop, or nan");
  command->add_option(
      "--bind", arguments->bindings,
      "x=age,bmi: the columns of an input; 'x=*': every column not bound elsewhere");
  command->add_option("--set", arguments->settings,
                      "ridge=0.1: a shared input or size; a number, a JSON array, or @file.npy");
  command->add_option("--out", arguments->out,
                      "a folder for outputs.json, one .npy per output, run.json and report.html");
  command->add_option("--memory", arguments->memory,
                      "512MB: how much of the records to keep in memory; larger tables are read "
                      "again in every round");
  command->add_option("--threads", arguments->threads, "how many threads to use (default: all)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->add_flag("--reference", arguments->reference,
                    "evaluate on the pooled records instead (the definition; slow)");
  command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace starfold::cli
