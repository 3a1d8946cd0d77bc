// The server's side: what to send next, what came back, whether all is done. It knows nothing of
// sockets, threads or files, and sees no record.
#pragma once

#include <memory>
#include <optional>

#include "starfold/federation/program.h"
#include "starfold/runtime/machine.h"

namespace starfold {

class Coordinator {
 public:
  // A compiled program without errors, and the clients by name. RunError when settings do not fit, when
  // a program that reads records has no client or two clients share a name, and later when `stop` is set
  // from outside.
  Coordinator(std::shared_ptr<const CompiledProgram> program, Settings settings,
              std::vector<std::string> clients, bool optimize = true,
              const std::atomic<bool>* stop = nullptr);

  // What to send to every client now; empty when done.
  const Bytes& request() const { return request_; }
  // Takes one client's answer. Answers may come in any order; they are merged in client order, so
  // the result does not depend on it. RunError names the client when it refuses or its answer cannot be
  // used; another answer of that client is still welcome then.
  // How many numbers about records it held.
  std::int64_t absorb(std::size_t client, std::string_view answer);
  bool done() const { return phase_ == Phase::done; }

  const Results& results() const { return machine_->results(); }
  std::int64_t rounds_run() const { return static_cast<std::int64_t>(sequence_); }
  // The round in progress; null while clients introduce themselves and at the end.
  const Round* round() const { return machine_ ? machine_->round() : nullptr; }
  std::int64_t iteration() const { return machine_ ? machine_->iteration() : 0; }
  const SizeValues& sizes() const { return sizes_; }

 private:
  enum class Phase { greeting, running, done };

  [[noreturn]] void reject(std::size_t client, const std::string& reason) const;
  void greet(std::size_t client, const HelloMessage& message);
  void take(std::size_t client, StateMessage message);
  void all_answered();
  void ask();

  std::shared_ptr<const CompiledProgram> program_;
  Settings settings_;
  const std::atomic<bool>* stop_;
  std::vector<std::string> clients_;
  Phase phase_ = Phase::greeting;
  Bytes request_;
  std::uint64_t sequence_ = 0;  // rounds finished; also the number of the request in progress
  SizeValues sizes_;
  std::map<std::string, std::string> size_from_;
  std::vector<bool> answered_;
  std::size_t answers_ = 0;
  std::vector<std::vector<MergeState>> waiting_;  // by client, until all before it are merged
  std::vector<MergeState> merged_;
  std::size_t merged_clients_ = 0;
  std::optional<Machine> machine_;
};

}  // namespace starfold
