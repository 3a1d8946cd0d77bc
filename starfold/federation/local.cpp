#include "starfold/federation/local.h"

#include <algorithm>

#include "starfold/base/clock.h"
#include "starfold/base/data_error.h"
#include "starfold/base/parallel.h"
#include "starfold/tensor/axis_view.h"

namespace starfold {
namespace {

// Clients whose records lie in memory already may lay them out once more in a long run, all together into this part of the memory that
// is for records: tables that are large for the machine stay as they are.
constexpr std::int64_t share_of_copies = 16;

// What was exchanged with one pack, or would have been with each client in it.
struct Traffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::int64_t numbers = 0;
};

std::vector<ClientReport> client_reports(const std::vector<Pack>& packs,
                                         const std::vector<Traffic>& traffic) {
  std::size_t count = 0;
  for (const Pack& pack : packs) count += pack.clients.size();
  std::vector<ClientReport> reports(count);
  for (std::size_t i = 0; i < packs.size(); ++i) {
    for (const PackedClient& client : packs[i].clients)
      reports.at(client.place) = {client.name, client.records, traffic[i].sent, traffic[i].received,
                                  traffic[i].numbers};
  }
  return reports;
}

std::int64_t packed_clients(const std::vector<Pack>& packs) {
  std::int64_t count = 0;
  for (const Pack& pack : packs) {
    if (pack.clients.size() > 1) count += static_cast<std::int64_t>(pack.clients.size());
  }
  return count;
}

// The first client of a pack that cannot answer what its pack could not, found by halves: a pack fails
// when one of its records does. `requests` are those that led there: the greeting and the one with number `sequence`.
RunError blame(const ir::Program& program, const Pack& pack, const Arrays& arrays,
               const RunError& failure, const std::vector<Bytes>& requests, std::uint64_t sequence,
               ProgramCache& cache, EngineOptions options) {
  const auto trouble = [&](std::size_t first, std::size_t last) {
    Node node(unpack(program, pack, arrays, first, last), cache, options);
    for (const Bytes& request : requests) {
      node.handle(request);
      if (node.trouble()) break;
      node.go_on(sequence);
    }
    return node.trouble();
  };
  std::size_t first = 0;
  std::size_t last = pack.clients.size();
  while (last - first > 1) {
    const std::size_t middle = first + (last - first) / 2;
    (trouble(first, middle) ? last : first) = middle;
  }
  return trouble(first, last).value_or(failure);
}

// Keys for the clients of one run in this process: nobody outlives it, so they need not either.
RunIdentity masked_identity(const std::vector<std::string>& names, const RunOptions::Secure& secure,
                            std::vector<secure::Identity>& identities) {
  RunIdentity identity;
  identity.group = secure::Group{secure.threshold, secure.minimum_clients, {}};
  for (const std::string& name : names) {
    identities.push_back(std::make_shared<const secure::Secret>(secure::Secret::random()));
    identity.group->members.push_back({name, secure::signing_key(*identities.back())});
  }
  return identity;
}

class LocalRun {
 public:
  LocalRun(const std::shared_ptr<const CompiledProgram>& program, std::vector<Pack> packs,
           const Settings& settings, const RunOptions& options)
      : program_(program),
        packs_(std::move(packs)),
        options_(options),
        threads_(options.threads > 0 ? options.threads : static_cast<int>(hardware_threads())),
        identities_(packs_.size()),
        coordinator_(program, settings, names_of(packs_), options.stop, identity()),
        cache_(*options.signature),
        traffic_(packs_.size()) {
    engine_.block_records = options.block_records;
    engine_.stop = options.stop;
    if (options.room) {
      engine_.room = std::make_shared<std::atomic<std::int64_t>>(*options.room);
      engine_.copies = std::make_shared<std::atomic<std::int64_t>>(*options.room / share_of_copies);
    }
    // Few clients share their threads among blocks; many are spread over the threads themselves.
    engine_.threads =
        std::max(1, threads_ / static_cast<int>(std::max<std::size_t>(1, packs_.size())));
    nodes_.reserve(packs_.size());
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      NoiseOptions noise;
      noise.clients = static_cast<std::int64_t>(packs_[i].clients.size());
      if (options.privacy && options.privacy->seed) noise.seed = *options.privacy->seed + 1 + i;
      nodes_.emplace_back(std::move(packs_[i].records), cache_, engine_, identities_[i], noise);
    }
    report_.round_runs.resize(static_cast<std::size_t>(program->plan->rounds));
  }

  RunReport run() {
    while (!coordinator_.done()) {
      check_stop();
      if (coordinator_.round() == nullptr) {
        greet();
      } else {
        round();
      }
    }
    report_.results = coordinator_.results();
    for (const ir::Output& keep : program_->plan->program.keeps) hand_out(keep);
    report_.rounds = coordinator_.rounds_run();
    report_.sample = options_.sample;
    report_.sizes = coordinator_.sizes();
    report_.group = coordinator_.group();
    report_.clients = client_reports(packs_, traffic_);
    report_.packed = packed_clients(packs_);
    report_.privacy = coordinator_.privacy();
    report_.seconds = since(start_);
    return std::move(report_);
  }

 private:
  static std::vector<std::string> names_of(const std::vector<Pack>& packs) {
    std::vector<std::string> names;
    for (const Pack& pack : packs) names.push_back(pack.records.name);
    return names;
  }

  RunIdentity identity() {
    RunIdentity identity;
    if (options_.secure) identity = secure_identity();
    identity.sample = options_.sample;
    if (!options_.privacy) return identity;
    identity.terms.emplace();
    identity.terms->promise = *options_.privacy;
    for (const Pack& pack : packs_)
      identity.terms->clients += static_cast<std::int64_t>(pack.clients.size());
    return identity;
  }

  RunIdentity secure_identity() {
    if (packed_clients(packs_) > 0)
      throw RunError("clients that are packed for a simulation cannot mask their states");
    identities_.clear();
    return masked_identity(names_of(packs_), *options_.secure, identities_);
  }

  void check_stop() const {
    if (options_.stop != nullptr && *options_.stop) throw RunError("the run was stopped");
  }

  // What clients keep, to each of them.
  void hand_out(const ir::Output& keep) {
    const Type& type = program_->plan->program.graph[keep.node].type();
    std::vector<Tensor>& results = report_.results.kept[keep.name];
    for (const Pack& pack : packs_) results.resize(results.size() + pack.clients.size());
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      const auto& kept = nodes_[i].engine().kept();
      const auto own = kept.find(keep.name);
      for (std::size_t c = 0; c < packs_[i].clients.size(); ++c) {
        // A client that was not asked has nothing.
        Tensor& result = results[packs_[i].clients[c].place];
        result = own == kept.end() ? Tensor(Shape{0}) : own->second;
        if (own == kept.end() || packs_[i].clients.size() == 1) continue;
        const auto ends = packs_[i].ends.find(type.record_set());
        const auto end = [&](std::size_t client) {
          return ends == packs_[i].ends.end() ? static_cast<std::int64_t>(client) + 1
                                              : ends->second[client];
        };
        result = slices_between(own->second, *type.record_axis(), c == 0 ? 0 : end(c - 1), end(c));
      }
    }
  }

  // Why a client cannot even introduce itself is a matter of its data. What the server computes before its first round is not.
  void greet() {
    try {
      round();
    } catch (const RunError& error) {
      if (!std::string_view(error.what()).starts_with("client")) throw;
      throw DataError(error);
    }
  }

  // One request to every node, and all answers.
  void round() {
    const Clock::time_point round_start = Clock::now();
    const Round* const round = coordinator_.round();
    const std::int64_t before = coordinator_.rounds_run();
    const bool greeting = round == nullptr;
    // Where states are masked, each is asked for itself; otherwise all are asked the same, and it is written once.
    std::vector<Bytes> own_requests(greeting || !options_.secure ? 0 : nodes_.size());
    for (std::size_t i = 0; i < own_requests.size(); ++i) own_requests[i] = coordinator_.request(i);
    const Bytes common = own_requests.empty() ? coordinator_.request() : Bytes();
    const auto request_to = [&](std::size_t i) -> const Bytes& {
      return own_requests.empty() ? common : own_requests[i];
    };
    if (greeting) greeting_ = common;
    std::vector<Bytes> answers(nodes_.size());
    // While nodes start they share the compilation of the program, one after the other.
    const auto threads = static_cast<std::size_t>(greeting ? 1 : threads_);
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (coordinator_.awaits(i)) asked.push_back(i);
    }
    in_parallel(asked.size(), threads, [&](std::size_t at) {
      const std::size_t i = asked[at];
      answers[i] = nodes_[i].handle(request_to(i));
      if (greeting) nodes_[i].release_arrays();
    });
    check_stop();  // what nodes say of a round that was left is nobody's trouble
    const double worked = since(round_start);
    report_.times.clients += worked;
    for (const std::size_t i : asked) {
      // The user of a local run owns all data: she is told what no message says.
      if (nodes_[i].trouble()) fail(i, request_to(i));
      traffic_[i].received += request_to(i).size();
      traffic_[i].sent += answers[i].size();
      traffic_[i].numbers += coordinator_.absorb(i, answers[i]);
    }
    report_.times.server += since(round_start) - worked;
    if (greeting || coordinator_.rounds_run() == before) return;
    ++report_.round_runs[static_cast<std::size_t>(round->number)];
    if (options_.watch) {
      options_.watch({coordinator_.rounds_run(), coordinator_.iteration(), since(start_),
                      since(round_start), &coordinator_.results()});
    }
  }

  [[noreturn]] void fail(std::size_t i, const Bytes& request) {
    const RunError failure = *nodes_[i].trouble();
    // What private states hold by now cannot be told from the records of some of the clients.
    const bool remembers = request != greeting_ && nodes_[i].engine().has_private();
    if (packs_[i].clients.size() == 1 || remembers) throw failure;
    const Arrays arrays = nodes_[i].arrays();
    std::vector<Bytes> requests = {greeting_};
    if (request != greeting_) requests.push_back(request);
    throw blame(program_->plan->program, packs_[i], arrays, failure, requests,
                static_cast<std::uint64_t>(coordinator_.rounds_run()), cache_, engine_);
  }

  const Clock::time_point start_ = Clock::now();
  std::shared_ptr<const CompiledProgram> program_;
  std::vector<Pack> packs_;
  const RunOptions& options_;
  int threads_;
  std::vector<secure::Identity> identities_;
  Coordinator coordinator_;
  ProgramCache cache_;
  EngineOptions engine_;
  std::vector<Node> nodes_;
  std::vector<Traffic> traffic_;
  Bytes greeting_;
  RunReport report_;
};

}  // namespace

RunReport run_local(const std::shared_ptr<const CompiledProgram>& program,
                    std::vector<Client> clients, const Settings& settings,
                    const RunOptions& options) {
  return run_packs(program, keep_apart(program->plan->program, std::move(clients)), settings,
                   options);
}

RunReport run_packs(const std::shared_ptr<const CompiledProgram>& program, std::vector<Pack> packs,
                    const Settings& settings, const RunOptions& options) {
  return LocalRun(program, std::move(packs), settings, options).run();
}

}  // namespace starfold
