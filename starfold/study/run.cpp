#include "starfold/study/run.h"

#include <fmt/chrono.h>

#include <chrono>
#include <ctime>

#include "starfold/base/data_error.h"
#include "starfold/base/utf8.h"
#include "starfold/base/version.h"
#include "starfold/data/memory.h"
#include "starfold/page/pages.h"
#include "starfold/privacy/neighbours.h"
#include "starfold/runtime/demand.h"
#include "starfold/runtime/reference.h"
#include "starfold/study/load.h"
#include "starfold/study/look/diagnose.h"
#include "starfold/study/nodes/over_nodes.h"

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

// What a report says of the clients of a run that asks none of them.
RunReport report_on(const std::vector<Pack>& packs) {
  RunReport report;
  for (const Pack& pack : packs) report.clients.resize(report.clients.size() + pack.clients.size());
  for (const Pack& pack : packs) {
    for (const PackedClient& client : pack.clients)
      report.clients.at(client.place) = {client.name, client.records, 0, 0};
  }
  return report;
}

// Clients that were packed together, one by one where the program tells them apart.
std::vector<Pack> told_apart(const ir::Program& program, std::vector<Pack> packs) {
  if (!tells_clients_apart(program)) return packs;
  std::vector<Pack> all;
  for (Pack& pack : packs) {
    for (Pack& one : take_apart(program, std::move(pack))) all.push_back(std::move(one));
  }
  return all;
}

RunReport run_reference(const ir::Program& program, std::vector<Pack> packs,
                        const Settings& settings) {
  RunReport report = report_on(packs);
  std::vector<Client> clients;
  for (Pack& pack : told_apart(program, std::move(packs)))
    clients.push_back(std::move(pack.records));
  const Stopwatch watch;
  report.results = evaluate_reference(program, clients, settings);
  report.seconds = watch.seconds();
  return report;
}

// The records of all clients as those of one.
std::vector<Pack> pooled(const ir::Program& program, std::vector<Pack> packs,
                         const Settings& settings) {
  std::vector<Client> clients;
  for (Pack& pack : packs) clients.push_back(std::move(pack.records));
  Client all;
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated() && !clients.empty())
      all.arrays[input.name] = virtual_global(input, clients, settings.sizes);
  }
  std::vector<Pack> result;
  result.push_back({std::move(all), {PackedClient{}}, {}});
  return result;
}

// The same plan over the pooled records; where the program tells clients apart, over each one's.
RunReport run_exact_reference(const StudyRun& run, std::vector<Pack> packs,
                              const Settings& settings) {
  const ir::Program& program = run.program->compilation.program;
  RunReport report = report_on(packs);
  const Stopwatch watch;
  RunOptions options;
  options.threads = run.study.threads;
  packs = tells_clients_apart(program) ? told_apart(program, std::move(packs))
                                       : pooled(program, std::move(packs), settings);
  report.results = run_packs(run.program, std::move(packs), settings, options).results;
  report.seconds = watch.seconds();
  return report;
}

RunReport run_federated(const StudyRun& run, std::vector<Pack> packs, std::int64_t room,
                        const Settings& settings, const RunControl& control) {
  RunOptions options;
  options.room = room;
  options.threads = run.study.threads;
  options.stop = control.stop;
  options.watch = control.watch;
  options.privacy = run.study.privacy;
  options.sample = run.study.federation.sample;
  options.secure = run.study.secure;
  // A federation is never empty: where there is nothing to read, one without records stands in.
  const bool alone = packs.empty();
  if (alone) packs.push_back({Client{}, {PackedClient{}}, {}});
  RunReport report = run_packs(run.program, std::move(packs), settings, options);
  if (alone) report.clients.clear();
  return report;
}

// A matrix that cannot be solved with says nothing to a person; the columns that made it so do. Empty where there is no more to say.
std::string reason_of(const RunError& error, const Evidence& evidence) {
  const std::string_view what = error.what();
  const bool matrix =
      what.find("is singular") != what.npos || what.find("not positive definite") != what.npos;
  return matrix ? singular_columns(evidence) : "";
}

// RunError when missing values have left no record at all.
void require_records(const Study& study, const StudyData& data) {
  std::int64_t dropped = 0;
  for (const std::int64_t count : data.dropped) dropped += count;
  if (study.missing != Missing::drop || dropped == 0) return;
  for (const Pack& pack : data.packs) {
    for (const PackedClient& client : pack.clients) {
      if (client.records > 0) return;
    }
  }
  throw RunError(
      fmt::format("no records are left: all {} lack a value in a column that is used", dropped));
}

// Over data that is here.
void run_here(StudyRun& run, const Settings& settings, const RunControl& control) {
  const ir::Program& typed = run.program->compilation.program;
  const Stopwatch loading;
  StudyData data;
  try {
    data = load_study(run.study, typed, settings, control.given);
    require_records(run.study, data);
  } catch (const RunError& error) {
    throw DataError(error);
  }
  const double load_seconds = loading.seconds();
  if (control.loaded) control.loaded();
  Evidence evidence{{}, data.columns};
  for (const Pack& pack : data.packs) {
    if (pack.records.table) evidence.tables.push_back(pack.records.table);
  }
  try {
    if (!control.reference) {
      run.report = run_federated(run, std::move(data.packs), data.room, settings, control);
    } else {
      run.report = run.program->planning.exact
                       ? run_exact_reference(run, std::move(data.packs), settings)
                       : run_reference(typed, std::move(data.packs), settings);
    }
  } catch (const Unmet& unmet) {
    throw named(unmet, typed, data.columns);
  } catch (const RunError& error) {
    // What a private run says of records has noise in it.
    const std::string reason = run.study.privacy ? "" : reason_of(error, evidence);
    if (reason.empty()) throw;
    const std::string text = fmt::format("{}\n{}", error.what(), reason);
    throw error.where() ? RunError(text, *error.where()) : RunError(text);
  }
  run.report.times.load = load_seconds;
  run.report.columns = std::move(data.columns);
  run.report.references = std::move(data.references);
  for (std::size_t i = 0; i < data.dropped.size(); ++i)
    run.report.clients.at(i).dropped = data.dropped[i];
  for (std::size_t i = 0; i < data.missing.size(); ++i)
    run.report.clients.at(i).missing = std::move(data.missing[i]);
}

// How many records there are, or lack a value, changes with a single one: without noise, a private run does not tell it.
void hide_records(RunReport& report) {
  report.client_details = false;
  for (ClientReport& client : report.clients) {
    client.records = unknown_records;
    client.dropped = 0;
    client.missing.clear();
  }
}

// StudyError where a record that replaces another could be left out for what it holds, while the promise takes the number of records
// as known. What nodes do with a query of their own they say themselves.
void require_known_records(const Study& study) {
  if (!privacy::counts_records_as_known(*study.privacy)) return;
  const auto refuse = [](const std::string& why) {
    throw StudyError(fmt::format(
        "privacy.neighbours = \"replace\" takes the number of records as known, but {}, so that a "
        "record in place of another may not count; say neighbours = \"add_remove\"",
        why));
  };
  if (study.missing == Missing::drop)
    refuse("missing = \"drop\" leaves out those with a missing value");
  for (const StudyClient& client : study.clients) {
    if (!client.data.query.empty())
      refuse(fmt::format("the query of client {} may leave some out", printable(client.name)));
  }
}

}  // namespace

void complete_report(StudyRun& run) {
  run.report.title = run.study.title;
  run.report.study = run.study.file.substr(run.study.file.find_last_of('/') + 1);
  run.report.missing = missing_word(run.study.missing);
  run.report.formula = run.study.formula;
  run.report.finished = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  run.versions["starfold"] = version();
  if (const std::string duckdb = loaded_duckdb_version(); !duckdb.empty())
    run.versions["duckdb"] = duckdb;
}

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
  if (run.study.privacy && run.study.exact)
    throw StudyError(
        "exact mode and [privacy] do not go together: an exact run adds no noise, and cannot keep "
        "what is promised");
  if (run.study.privacy) require_known_records(run.study);
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
  const std::int64_t sample = run.study.federation.sample.clients;
  if (sample > 0 && control.reference)
    throw StudyError("--reference gives the answer of all clients: it cannot go with --sample");
  if (sample > 0 && run.study.exact)
    throw StudyError("an exact run gives the answer of all clients: it cannot go with --sample");
  if (sample > static_cast<std::int64_t>(run.study.clients.size()) && run.study.simulation.empty())
    throw StudyError(fmt::format("--sample asks {} clients, but there are {}", sample,
                                 run.study.clients.size()));
  if (sample > 0 && run.study.secure)
    throw StudyError("masks are agreed among all clients: they cannot go with --sample");
  // Who is drawn does not depend on records, but on how many clients there are.
  if (sample > 0 && run.study.privacy && run.study.privacy->unit == privacy::Unit::client &&
      run.study.privacy->neighbours == privacy::Neighbours::add_remove)
    throw StudyError(
        "with one client more or less, --sample would draw others: what protects clients under "
        "--sample needs neighbours = \"replace\"");
  if (over_nodes && control.reference)
    throw StudyError("the records of nodes are not here: --reference needs them in one place");
  if (over_nodes) {
    if (control.loaded) control.loaded();  // it is elsewhere
    run.report = run_over_nodes(run.study, run.program, settings, control);
  } else {
    run_here(run, settings, control);
  }
  // Made-up clients have nothing to hide.
  run.report.client_details =
      !over_nodes && (run.study.client_details || !run.study.simulation.empty());
  if (run.study.privacy) hide_records(run.report);
  complete_report(run);
  return run;
}

}  // namespace starfold
