// starfold run: a program over local client files.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/base/error.h"
#include "starfold/page/pages.h"
#include "starfold/study/options.h"
#include "starfold/study/output/folder.h"
#include "starfold/study/output/results.h"
#include "starfold/study/run.h"

namespace starfold::cli {
namespace {

struct RunArguments : StudyOptions {
  bool json = false;
  bool reference = false;
  bool resume = false;
};

std::atomic<bool> stop_requested = false;

void write_words(std::string_view words) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, words.data(), words.size());
}

void set_timer(suseconds_t microseconds) {
  const itimerval once = {{0, 0}, {0, microseconds}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

// While data is read there is nothing to leave in order, nor where a single operation goes on after Ctrl-C.
void stop_at_once(int) {
  write_words("error: the run was stopped\n");
  _exit(exit_failed);
}

// The first Ctrl-C ends the run, within 100 ms, or over nodes after the current round; a second one ends the process at once.
constexpr suseconds_t patience = 50'000;  // giving memory back takes its time, too
bool over_nodes = false;
void on_interrupt(int) {
  stop_requested = true;
  if (!over_nodes) {
    std::signal(SIGALRM, stop_at_once);
    set_timer(patience);
  }
  if (isatty(STDERR_FILENO) != 0) write_words("\nstopping; Ctrl-C again stops at once\n");
  std::signal(SIGINT, SIG_DFL);
}

// One line on a terminal, rewritten after every round; nothing where no one watches.
class ProgressLine {
 public:
  explicit ProgressLine(bool show) : show_(show) {}
  ~ProgressLine() { clear(); }
  void say(std::string_view what) {
    if (!show_) return;
    drawn_ = true;
    complain(fmt::format("\r\033[K{}", what));
    std::fflush(stderr);
  }
  void clear() {
    if (drawn_) complain("\r\033[K");
    drawn_ = false;
  }
  void operator()(const Progress& progress) {
    if (!show_ || progress.seconds - last_ < 0.05) return;
    last_ = progress.seconds;
    std::string line = fmt::format("round {}", progress.rounds);
    for (const auto& [name, values] : progress.results->traces) {
      if (!values.empty()) line += fmt::format("  {} {:.6g}", name, values.back());
    }
    say(fmt::format("{}  {:.3g} s/round  {:.1f} s", line, progress.round_seconds,
                    progress.seconds));
  }

 private:
  bool show_;
  bool drawn_ = false;
  double last_ = -1;
};

// Lets signals that would end the process wait while a folder is written, so that nothing half stays behind.
class SignalsWait {
 public:
  SignalsWait() {
    set_timer(0);
    for (std::size_t i = 0; i < waiting.size(); ++i) before_[i] = std::signal(waiting[i], note);
  }
  ~SignalsWait() {
    for (std::size_t i = 0; i < waiting.size(); ++i) std::signal(waiting[i], before_[i]);
    if (const int signal = noted.exchange(0); signal != 0) std::raise(signal);
  }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  static constexpr std::array waiting = {SIGINT, SIGTERM, SIGHUP};
  static inline std::atomic<int> noted = 0;
  static void note(int signal) { noted = signal; }
  std::array<void (*)(int), waiting.size()> before_{};
};

void check_folder(const Study& study, const CompiledProgram& program) {
  const SignalsWait wait;
  check_results_folder(study, program);
}

void write_folder(const StudyRun& run) {
  const SignalsWait wait;
  write_results(run);
}

int run(const RunArguments& arguments) {
  std::shared_ptr<const CompiledProgram> program;
  try {
    const auto start = std::chrono::steady_clock::now();
    Study study = make_study(arguments);
    program = load_program(study, arguments.json);
    const std::chrono::duration<double> compiling = std::chrono::steady_clock::now() - start;
    if (!program->plan) return exit_refused;
    if (!study.out.empty()) check_folder(study, *program);
    auto line = std::make_shared<ProgressLine>(!arguments.json && isatty(STDERR_FILENO) != 0);
    line->say("reading data");
    std::signal(SIGINT, stop_at_once);
    over_nodes = study.federation.via != Federation::Via::files;
    RunControl control;
    control.reference = arguments.reference;
    control.resume = arguments.resume;
    control.loaded = [&] { std::signal(SIGINT, arguments.reference ? SIG_DFL : on_interrupt); };
    control.stop = &stop_requested;
    control.awaited = [line](const std::vector<std::string>& names) {
      line->say(fmt::format("waiting for {}", fmt::join(names, ", ")));
    };
    control.watch = [line](const Progress& progress) { (*line)(progress); };
    StudyRun run = run_study(std::move(study), program, control);
    set_timer(0);
    run.report.times.compile = compiling.count();
    line->clear();
    const std::string text = arguments.json ? run_json(run) : report_text(run.report, *program);
    try {
      if (!run.study.out.empty()) write_folder(run);
    } catch (const RunError&) {
      if (!arguments.json) say(text);  // what was computed is not lost
      throw;
    }
    say(text);
    return exit_done;
  } catch (...) {
    set_timer(0);
    return tell(current_trouble(), arguments.json,
                program ? &program->compilation.sources : nullptr);
  }
}

}  // namespace

void add_run(CommandLine& line) {
  auto arguments = std::make_shared<RunArguments>();
  Command command = line.add("run", "run a program over local client files, or a study file",
                             [arguments] { return run(*arguments); });
  command.required(
      "FILE", arguments->file,
      "a program, the name of a library program (see `starfold lib`), or a study (.toml)");
  command.option("--client", arguments->clients,
                 "NAME=PATH: a client and its data (.csv, .parquet, .jsonl, .duckdb, .sqlite, "
                 ".npz, .npy, ...); repeat for each");
  command.option("--simulate", arguments->simulate,
                 "clients=1000000,records=poisson(20): made-up clients instead; y=bernoulli(0.3) "
                 "says what an input holds, normal(0,1) otherwise; seed=7");
  command.option("--missing", arguments->missing,
                 "records with a missing value: error (the default), drop, or nan");
  command.option("--bind", arguments->bindings,
                 "x=age,bmi: the columns of an input; 'x=*': every column not bound elsewhere");
  command.option("--formula", arguments->formula,
                 "'y ~ age * sex + log(bmi)': the columns of inputs y and x, in the notation of R");
  command.option("--levels", arguments->levels,
                 "sex=f,m: the levels of a column, the first without a column of its own");
  command.option("--na", arguments->na,
                 "'?': what stands for a missing value in text files, beside NA; may repeat");
  command.option("--delimiter", arguments->delimiter, "';': what separates fields, or tab");
  command.option("--decimal", arguments->decimal, ",: numbers have a decimal comma");
  command.option("--encoding", arguments->encoding, "latin1 or windows-1252; utf-8 otherwise");
  command.option("--dates", arguments->dates, "%d.%m.%Y: how dates are written");
  command.option("--sheet", arguments->sheet, "the sheet of an Excel file; the first otherwise");
  command.option("--set", arguments->settings,
                 "ridge=0.1: a shared input or size; a number, a JSON array, or @file.npy");
  command.option("--out", arguments->out,
                 "a folder for outputs.json, one .npy per output, run.json and report.html");
  command.flag("--client-details", arguments->client_details,
               "with --out: also how many records each client has, and in which file");
  command.option("--memory", arguments->memory,
                 "512MB: how much the run may take; tables that do not fit are read "
                 "again in every round");
  command.option("--threads", arguments->threads, 1, 1024,
                 "how many threads to use (default: all)");
  command.flag("--exact", arguments->exact,
               "the same bits for every split of the records, order, thread count and machine");
  command.option("--sample", arguments->sample, 1, 1'000'000'000,
                 "ask every round of so many clients, drawn for it");
  command.option("--sample-seed", arguments->sample_seed,
                 "what the draws depend on, a whole number (default: 0)");
  command.flag("--resume", arguments->resume,
               "go on with the unfinished run of a study over nodes");
  command.flag("--json", arguments->json, "print one JSON object");
  command.flag("--reference", arguments->reference,
               "evaluate on the pooled records instead (the definition; slow)");
}

}  // namespace starfold::cli
