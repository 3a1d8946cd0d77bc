// starfold node serve, starfold node try: a node at work, and the owner's dry run.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>

#include "cli/node.h"
#include "cli/output.h"
#include "starfold/data/memory.h"
#include "starfold/node/server.h"
#include "starfold/plan/explain.h"
#include "starfold/study/nodes/trial.h"
#include "starfold/study/options.h"

namespace starfold::cli {
namespace {

std::atomic<bool> node_stop_requested = false;
std::atomic<bool> reload_requested = false;

void on_stop(int) { node_stop_requested = true; }
void on_reload(int) { reload_requested = true; }

void wait_for_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = on_reload;
  sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action,
            nullptr);  // a file that may not grow is an error of writing, as a full disk is
}

// A node holds keys and records: its memory goes into no file, and no other process may look into it.
void keep_memory_private() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);
}

// A source that cannot be read, or has not the columns that the file lists, is a mistake of the file: nobody should find it first
// who asks for it.
void check_sources(const NodeConfig& config) {
  const MemoryPlan memory = plan_memory(0);
  Tables tables({memory.reader, memory.records});
  for (const NodeSource& source : config.sources) open_node_source(config, source, tables);
}

}  // namespace

int node_serve(const std::string& file) {
  try {
    wait_for_signals();
    keep_memory_private();
    NodeConfig config = read_node_config(file);
    for (const std::string& warning : config.warnings)
      complain(fmt::format("warning: {}\n", warning));
    check_sources(config);
    Desk desk(std::move(config));
    ServerSignals signals;
    signals.stop = &node_stop_requested;
    signals.reload = &reload_requested;
    signals.listening = [] {
      say("listening\n");
      std::fflush(stdout);
    };
    signals.say = [](const std::string& words) { complain(words + "\n"); };
    serve(desk, signals);
    return exit_done;
  } catch (...) {
    return tell(current_trouble(), false);
  }
}

int node_try(const std::string& file, const std::string& study_file) {
  std::shared_ptr<const CompiledProgram> program;
  try {
    const NodeConfig config = read_node_config(file);
    StudyOptions options;
    options.file = study_file;
    const Study study = make_study(options);
    program = load_program(study, false);
    if (!program->plan) return exit_refused;
    check_study(study, program->compilation.program);
    const Settings settings = study_settings(study, program->compilation.program);
    std::signal(SIGINT, on_stop);
    const Trial trial = try_study(config, study, program, settings, &node_stop_requested);
    say(exposure_text(*program->plan, program->compilation.sources) + "\n" +
        trial_text(config, trial));
    return trial.refused ? exit_refused : exit_done;
  } catch (...) {
    return tell(current_trouble(), false, program ? &program->compilation.sources : nullptr);
  }
}

}  // namespace starfold::cli
