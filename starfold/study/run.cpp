#include "starfold/study/run.h"

#include <fmt/chrono.h>

#include <chrono>
#include <ctime>

#include "starfold/base/data_error.h"
#include "starfold/base/version.h"
#include "starfold/data/memory.h"
#include "starfold/page/pages.h"
#include "starfold/runtime/demand.h"
#include "starfold/runtime/reference.h"
#include "starfold/study/load.h"
#include "starfold/study/over_nodes.h"

namespace starfold {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

RunReport run_reference(const ir::Program& program, std::vector<Pack>& packs,
                        const Settings& settings) {
  RunReport report;
  std::vector<Client> clients;
  for (const Pack& pack : packs) report.clients.resize(report.clients.size() + pack.clients.size());
  for (Pack& pack : packs) {
    for (const PackedClient& client : pack.clients)
      report.clients.at(client.place) = {client.name, client.records, 0, 0};
    clients.push_back(std::move(pack.records));
  }
  const Stopwatch watch;
  report.results = evaluate_reference(program, clients, settings);
  report.seconds = watch.seconds();
  return report;
}

RunReport run_federated(const StudyRun& run, std::vector<Pack> packs, const Settings& settings,
                        const RunControl& control) {
  RunOptions options;
  options.threads = run.study.threads;
  options.stop = control.stop;
  options.watch = control.watch;
  options.privacy = run.study.privacy;
  options.secure = run.study.secure;
  // A federation is never empty: where there is nothing to read, one without records stands in.
  const bool alone = packs.empty();
  if (alone) packs.push_back({Client{}, {PackedClient{}}, {}});
  RunReport report = run_packs(run.program, std::move(packs), settings, options);
  if (alone) report.clients.clear();
  return report;
}

// Over data that is here.
void run_here(StudyRun& run, const Settings& settings, const RunControl& control) {
  const ir::Program& typed = run.program->compilation.program;
  const Stopwatch loading;
  StudyData data;
  try {
    data = load_study(run.study, typed, settings, control.given);
  } catch (const RunError& error) {
    throw DataError(error);
  }
  const double load_seconds = loading.seconds();
  try {
    run.report = control.reference ? run_reference(typed, data.packs, settings)
                                   : run_federated(run, std::move(data.packs), settings, control);
  } catch (const Unmet& unmet) {
    throw named(unmet, typed, data.columns);
  }
  run.report.times.load = load_seconds;
  run.report.columns = std::move(data.columns);
  for (std::size_t i = 0; i < data.dropped.size(); ++i)
    run.report.clients.at(i).dropped = data.dropped[i];
  for (std::size_t i = 0; i < data.missing.size(); ++i)
    run.report.clients.at(i).missing = std::move(data.missing[i]);
}

}  // namespace

RunError named(const Unmet& unmet, const ir::Program& program,
               const std::map<std::string, std::vector<std::string>>& columns) {
  const std::string text = unmet_text(program, unmet.place(), unmet.entries(), columns);
  return unmet.where() ? RunError(text, *unmet.where()) : RunError(text);
}

StudyRun run_study(Study study, std::shared_ptr<const CompiledProgram> program,
                   const RunControl& control) {
  StudyRun run;
  run.study = std::move(study);
  run.program = std::move(program);
  const ir::Program& typed = run.program->compilation.program;
  check_study(run.study, typed);
  Settings settings = study_settings(run.study, typed);
  settings.memory = plan_memory(run.study.memory).values;
  if (run.study.privacy)
    privacy::require_bounds(
        *run.program->plan, *run.study.privacy,
        privacy::with_defaults(run.program->plan->program,
                               {bind_settings(run.program->plan->program, settings),
                                {settings.shared.begin(), settings.shared.end()}}));
  const bool over_nodes = run.study.federation.via != Federation::Via::files;
  if (control.resume && !over_nodes)
    throw StudyError("only a run over nodes can be gone on with: this study has none");
  if (run.study.privacy && control.reference)
    throw StudyError("--reference computes without noise: it cannot keep what [privacy] promises");
  if (over_nodes && control.reference)
    throw StudyError("the records of nodes are not here: --reference needs them in one place");
  if (over_nodes) {
    run.report = run_over_nodes(run.study, run.program, settings, control);
  } else {
    run_here(run, settings, control);
  }
  // Made-up clients have nothing to hide.
  run.report.client_details =
      !over_nodes && (run.study.client_details || !run.study.simulation.empty());
  run.report.title = run.study.title;
  run.report.study = run.study.file.substr(run.study.file.find_last_of('/') + 1);
  run.report.missing = missing_word(run.study.missing);
  run.report.formula = run.study.formula;
  run.report.references = reference_levels(run.study);
  run.report.finished = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  run.versions["starfold"] = version();
  if (const std::string duckdb = loaded_duckdb_version(); !duckdb.empty())
    run.versions["duckdb"] = duckdb;
  return run;
}

}  // namespace starfold
