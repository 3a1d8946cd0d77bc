#include "starfold/study/load.h"

#include <fmt/format.h>

#include "starfold/base/parallel.h"
#include "starfold/data/arrays/given.h"
#include "starfold/data/memory.h"
#include "starfold/study/simulate.h"

namespace starfold {
namespace {

void require_clients(const Study& study, const ir::Program& program) {
  if (!study.clients.empty() || federated_inputs(program).empty()) return;
  throw StudyError(
      study.file.empty()
          ? "no client is given; add --client NAME=PATH for each, or --simulate "
            "clients=1000,records=poisson(20)"
          : fmt::format("{}: no client is given; add a section [[client]] for each", study.file));
}

StudyData simulate_clients(const Study& study, const ir::Program& program,
                           const Settings& settings) {
  StudyData data;
  data.room = plan_memory(study.memory).records;
  Pack pack = simulate(program, parse_simulation(study.simulation),
                       bind_settings(program, settings), data.room, threads_of(study));
  for (const auto& [name, array] : pack.records.arrays)
    data.room -= static_cast<std::int64_t>(array.data.size() * sizeof(double));
  if (study.federation.sample.clients > 0 || pack.clients.size() == 1) {
    data.packs = take_apart(program, std::move(pack));
  } else if (tells_clients_apart(program)) {
    data.packs = in_parts(program, std::move(pack));
  } else {
    data.packs.push_back(std::move(pack));
  }
  return data;
}

StudyData load_clients(const Study& study, const ir::Program& program, const GivenTables& given) {
  const int threads = threads_of(study);
  const MemoryPlan memory = plan_memory(study.memory);
  Tables tables({memory.reader, memory.records});
  const StudySources sources = study_sources(study, program, given, tables);
  StudyData data;
  data.columns = input_names(sources.plan);
  data.references = reference_levels(sources.plan);
  std::vector<Client> clients;
  for (std::size_t i = 0; i < sources.clients.size(); ++i) {
    LoadedClient loaded = load_client(program, sources.clients[i],
                                      sources.as_they_come[i] ? ColumnPlan{} : sources.plan,
                                      {study.missing, threads}, tables.room());
    clients.push_back(std::move(loaded.client));
    data.dropped.push_back(loaded.dropped);
    data.missing.push_back(std::move(loaded.missing));
  }
  data.packs = keep_apart(program, std::move(clients));
  data.room = tables.room();
  return data;
}

}  // namespace

int threads_of(const Study& study) {
  return study.threads > 0 ? study.threads : static_cast<int>(hardware_threads());
}

StudySources study_sources(const Study& study, const ir::Program& program, const GivenTables& given,
                           Tables& tables) {
  StudySources sources;
  std::vector<DataSource> tabular;
  for (const StudyClient& client : study.clients) {
    const auto here = given.find(client.name);
    sources.clients.push_back(here != given.end()
                                  ? given_source(client.name, here->second)
                                  : open_source(program, client.name, client.data, tables));
    sources.as_they_come.push_back(brings_inputs(program, sources.clients.back(), study.bindings));
    if (!sources.as_they_come.back()) tabular.push_back(sources.clients.back());
  }
  if (!tabular.empty())
    sources.plan =
        plan_columns(program, tabular, study.bindings, study.categoricals, study_formula(study));
  return sources;
}

StudyData load_study(const Study& study, const ir::Program& program, const Settings& settings,
                     const GivenTables& given) {
  if (!study.simulation.empty()) return simulate_clients(study, program, settings);
  require_clients(study, program);
  return load_clients(study, program, given);
}

}  // namespace starfold
