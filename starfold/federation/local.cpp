#include "starfold/federation/local.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "starfold/base/error.h"

namespace starfold {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs body(i) for i in [0, count) on a few threads; the order of calls is not fixed, so each must
// touch only what belongs to i.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> helpers;
  const auto wanted = std::min<std::size_t>(static_cast<std::size_t>(threads), count);
  for (std::size_t i = 1; i < wanted; ++i) helpers.emplace_back(work);
  work();
}

// What was exchanged with one pack, or with each client in it.
struct Traffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

std::vector<ClientReport> client_reports(const std::vector<std::vector<PackedClient>>& packs,
                                         const std::vector<Traffic>& traffic) {
  std::size_t count = 0;
  for (const std::vector<PackedClient>& pack : packs) count += pack.size();
  std::vector<ClientReport> reports(count);
  for (std::size_t i = 0; i < packs.size(); ++i) {
    for (const PackedClient& client : packs[i])
      reports.at(client.place) = {client.name, client.records, traffic[i].sent,
                                  traffic[i].received};
  }
  return reports;
}

}  // namespace

RunReport run_local(const std::shared_ptr<const CompiledProgram>& program,
                    std::vector<Client> clients, const Settings& settings,
                    const RunOptions& options) {
  return run_packs(program, pack_clients(program->plan->program, std::move(clients)), settings,
                   options);
}

RunReport run_packs(const std::shared_ptr<const CompiledProgram>& program, std::vector<Pack> packs,
                    const Settings& settings, const RunOptions& options) {
  const Clock::time_point start = Clock::now();
  const int threads = options.threads > 0
                          ? options.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<std::string> names;
  for (const Pack& pack : packs) names.push_back(pack.records.name);
  Coordinator coordinator(program, settings, std::move(names), options.optimize, options.stop);
  ProgramCache cache(*options.signature);
  EngineOptions engine;
  engine.block_records = options.block_records;
  // Few clients share their threads among blocks; many are spread over the threads themselves.
  engine.threads = std::max(1, threads / static_cast<int>(std::max<std::size_t>(1, packs.size())));
  std::vector<std::vector<PackedClient>> clients;
  std::vector<Node> nodes;
  nodes.reserve(packs.size());
  for (Pack& pack : packs) {
    clients.push_back(std::move(pack.clients));
    nodes.emplace_back(std::move(pack.records), cache, engine);
  }

  RunReport report;
  report.round_runs.resize(static_cast<std::size_t>(program->plan->rounds));
  std::vector<Bytes> answers(nodes.size());
  std::vector<Traffic> traffic(nodes.size());
  bool greeting = true;
  while (!coordinator.done()) {
    if (options.stop != nullptr && *options.stop) throw RunError("the run was stopped");
    const Clock::time_point round_start = Clock::now();
    const Bytes& request = coordinator.request();
    if (const Round* round = coordinator.round())
      ++report.round_runs[static_cast<std::size_t>(round->number)];
    // While nodes start they share the compilation of the program, one after the other.
    parallel_for(nodes.size(), greeting ? 1 : threads, [&](std::size_t i) {
      answers[i] = nodes[i].handle(request);
      if (greeting) nodes[i].release_arrays();
    });
    const double worked = since(round_start);
    report.times.clients += worked;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      traffic[i].received += request.size();
      traffic[i].sent += answers[i].size();
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) coordinator.absorb(i, answers[i]);
    report.times.server += since(round_start) - worked;
    if (!greeting && options.watch) {
      options.watch({coordinator.rounds_run(), coordinator.iteration(), since(start),
                     since(round_start), &coordinator.results()});
    }
    greeting = false;
  }
  report.results = coordinator.results();
  report.rounds = coordinator.rounds_run();
  report.sizes = coordinator.sizes();
  report.clients = client_reports(clients, traffic);
  report.seconds = since(start);
  return report;
}

}  // namespace starfold
