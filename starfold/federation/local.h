// A federation in one process: the same Coordinator, Nodes and messages, carried by function calls.
#pragma once

#include <atomic>
#include <functional>

#include "starfold/federation/coordinator.h"
#include "starfold/federation/node.h"
#include "starfold/ops/standard.h"
#include "starfold/runtime/pack.h"

namespace starfold {

// What a watcher sees after each round.
struct Progress {
  std::int64_t rounds = 0;     // finished
  std::int64_t iteration = 0;  // of the innermost loop
  double seconds = 0;          // since the start
  double round_seconds = 0;    // of the last round
  const Results* results = nullptr;
};

struct RunOptions {
  int threads = 0;  // 0: as many as the machine has
  std::int64_t block_records = 512;
  const Signature* signature = &standard_signature();
  Sample sample = {};
  std::function<void(const Progress&)> watch;
  const std::atomic<bool>* stop =
      nullptr;  // set from outside to end the run after the current round
  std::optional<std::int64_t> room =
      {};  // bytes that clients may keep between rounds beside their records
  std::optional<privacy::Promise> privacy = {};  // of a program planned with Planning::additive
  // States are masked, as among nodes: the coordinator of this process sees only what they add up to.
  struct Secure {
    std::uint32_t threshold = 0;
    std::uint32_t minimum_clients = secure::least_members;
  };
  std::optional<Secure> secure = {};
};

// What a client somewhere else has is not told.
inline constexpr std::int64_t unknown_records = -1;

struct ClientReport {
  std::string name;
  std::int64_t records = 0;  // or unknown_records
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::int64_t numbers_sent = 0;  // about its records: the entries of its states in all rounds
  std::int64_t dropped = 0;       // records left out for a missing value; known to who loads them
  std::map<std::string, std::int64_t> missing = {};  // by column that lacks values: how many
};

// Where the time of a run went, in seconds.
struct RunTimes {
  double compile = 0;  // the program; measured by who calls
  double load = 0;     // opening and reading data; measured by who calls
  double clients = 0;  // clients at work, in all rounds
  double server = 0;   // merging and decoding
};

struct RunReport {
  Results results;
  std::int64_t rounds = 0;
  std::vector<ClientReport> clients;
  // Of these, how many were packed in a simulation. They sent nothing themselves: their bytes and numbers
  // are those that a message of theirs would have.
  std::int64_t packed = 0;
  double seconds = 0;
  RunTimes times;
  SizeValues sizes;                      // what the data and the settings made of the sizes
  std::vector<std::int64_t> round_runs;  // by round of the plan: how often it ran
  std::map<std::string, std::vector<std::string>>
      columns;  // names by input, where the caller knows them
  // What a study says of it, where there is one: for the report.
  std::string title;                              // what it calls itself
  std::string study;                              // the name of its file
  std::string missing;                            // "error", "drop", "nan"
  std::string formula;                            // what made the columns; empty: they were named
  std::map<std::string, std::string> references;  // by column with levels: the one without a column
  std::string finished;                           // when, in UTC
  bool client_details = true;          // whether a page may say how many records each client has
  std::string run;                     // the identity of a run over nodes; empty in one process
  std::vector<Departure> departures;   // clients that the run went on without
  std::optional<secure::Group> group;  // where states were masked: by whom,
  std::int64_t pinned_keys = 0;        // and of how many the study pins the key
  Sample sample = {};                  // of whom each round was asked
  std::optional<privacy::Report> privacy = {};  // of a private run
};

// Runs a program without errors over clients, each of which encodes its own records. RunError when data,
// numerics or a client stop it: it names the client and, where there is one, the place in the program. Who
// runs all clients owns their data, so details that no message carries are in it.
RunReport run_local(const std::shared_ptr<const CompiledProgram>& program,
                    std::vector<Client> clients, const Settings& settings,
                    const RunOptions& options = {});

// A simulation: the same over clients of which many may be packed. The report has each of them: the size of
// a message does not depend on whose records are in it.
RunReport run_packs(const std::shared_ptr<const CompiledProgram>& program, std::vector<Pack> packs,
                    const Settings& settings, const RunOptions& options = {});

}  // namespace starfold
