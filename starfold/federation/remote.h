// A run over clients that are somewhere else: requests may be lost, answers late, doubled or wrong. It knows nothing of sockets
// or files: a carrier brings messages there and back.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "starfold/federation/coordinator.h"
#include "starfold/federation/local.h"

namespace starfold {

// Brings requests to clients and answers back. It may lose or repeat both.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual void send(std::size_t client, const Bytes& request) = 0;
  struct Delivery {
    std::size_t client = 0;
    std::optional<Bytes> answer;  // none: the client cannot be reached now
  };
  // The next delivery; none when there was none for so many seconds. RunError when it can carry no more.
  virtual std::optional<Delivery> receive(double seconds) = 0;
};

struct RemoteOptions {
  enum class Dropout { wait, stop, go_on };  // when a client does not answer
  Dropout on_dropout = Dropout::wait;
  double timeout = 60;  // seconds without an answer of a client that is asked again and again
  std::function<void(const Bytes&)> checkpoint;  // gets Coordinator::save before every request
  std::function<void(const Progress&)> watch;    // after each round
  std::function<void(const std::vector<std::string>&)>
      awaited;  // who has not answered yet, now and then
  const std::atomic<bool>* stop = nullptr;
};

// A run that stopped because clients did not answer; it can go on from its checkpoint.
class ClientsAway : public RunError {
 public:
  using RunError::RunError;
};

// Runs to the end. RunError when a client refuses, stays away, or the run cannot go on. What was exchanged is in the report;
// how many records clients have is not: they do not say.
RunReport run_remote(Coordinator coordinator, const CompiledProgram& program,
                     const std::vector<std::string>& clients, Carrier& carrier,
                     const RemoteOptions& options);

// The answers of all clients to one question outside of a run. ClientsAway when one does not answer in time; where the run may go
// on without it there is none instead, as long as others answered.
std::vector<std::optional<Bytes>> ask_all(Carrier& carrier, const std::vector<std::string>& clients,
                                          const Bytes& request, const RemoteOptions& options);

}  // namespace starfold
