// The server's side: what to send next, what came back, whether all is done. It knows nothing of
// sockets, threads or files, and sees no record.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "starfold/base/error.h"
#include "starfold/federation/program.h"
#include "starfold/privacy/account.h"
#include "starfold/runtime/machine.h"
#include "starfold/secure/masked_states.h"
#include "starfold/secure/server.h"

namespace starfold {

// What a run over real clients says of itself, beside its program.
// Of how many clients each round is asked, drawn anew for every round; 0: of all.
struct Sample {
  std::int64_t clients = 0;
  double seed = 0;
};

struct RunIdentity {
  std::string run;                   // 32 hexadecimal digits
  std::string study;                 // its name, for data owners
  std::string bindings;              // which columns become which input
  std::vector<std::string> sources;  // by client: the name of its table
  // Of a private run: what is promised. The values of shared inputs become part of it here.
  std::optional<privacy::Terms> terms = {};
  // Where states are masked: who takes part, in the order of the clients. The coordinator then never holds a client's state.
  std::optional<secure::Group> group = {};
  Sample sample = {};
  // Whether clients have a policy, which lets no nan out that records make.
  bool guarded = false;
};

// A client says no.
class ClientRefused : public RunError {
 public:
  ClientRefused(const std::string& client, Refusal reason);
  const std::string& client() const { return client_; }
  Refusal reason() const { return reason_; }

 private:
  std::string client_;
  Refusal reason_;
};

// An answer that is changed or of the wrong form. The client may be asked again.
class UnusableAnswer : public RunError {
 public:
  using RunError::RunError;
};
// One that belongs to a question which is over: it came late, or twice.
class LateAnswer : public UnusableAnswer {
 public:
  using UnusableAnswer::UnusableAnswer;
};

// A client that the run went on without.
struct Departure {
  std::size_t client = 0;
  std::int64_t rounds = 0;  // that it took part in
};

class Coordinator {
 public:
  // A compiled program without errors, and the clients by name. RunError when settings do not fit, when
  // a program that reads records has no client or two clients share a name, and later when `stop` is set
  // from outside.
  Coordinator(std::shared_ptr<const CompiledProgram> program, Settings settings,
              std::vector<std::string> clients, const std::atomic<bool>* stop = nullptr,
              RunIdentity identity = {});

  // The same coordinator as the one that was saved, before the same round, so that the run goes on to the same bits.
  // RunError when the bytes are no state of this run. It keeps the identity of the run that was saved.
  static Coordinator resume(std::shared_ptr<const CompiledProgram> program, Settings settings,
                            std::vector<std::string> clients, std::string_view saved,
                            const std::atomic<bool>* stop = nullptr, RunIdentity identity = {});
  // Everything it knows, without the answers to the request in progress: those are asked for again.
  Bytes save() const;

  // What to send to every client now; empty when done. Not where states are masked: there, each is asked for itself.
  const Bytes& request() const { return request_; }
  // What to send to this client now: while clients are greeted, each is told the name of its own table.
  Bytes request(std::size_t client) const;
  // What started the run at this client, for one that has forgotten it.
  Bytes greeting(std::size_t client) const;
  // Takes one client's answer. Answers may come in any order; they are merged in client order, so
  // the result does not depend on it. ClientRefused when it says no, UnusableAnswer when its answer cannot be
  // used; another answer of that client is still welcome then. RunError when clients disagree.
  // How many numbers about records it held.
  std::int64_t absorb(std::size_t client, std::string_view answer);
  // Goes on without a client: it takes no part in this round or any later one.
  void leave(std::size_t client);
  // Whether the others can end the round without this client's answer: its masked state is there already.
  bool can_spare(std::size_t client) const;
  // Ends it so; the client takes part in later rounds.
  void spare(std::size_t client);
  // A client has lost its keys: all of them make new ones for the round, which everyone is asked for again. Those who gave shares
  // for it away already will refuse. RunError when that happens again and again.
  void renew_keys();
  bool done() const { return phase_ == Phase::done; }
  // Whether an answer of this client is still needed for the request in progress.
  bool awaits(std::size_t client) const {
    if (done() || left_[client]) return false;
    return secure_ ? secure_->awaits(static_cast<std::uint32_t>(client)) : !answered_[client];
  }

  const Results& results() const { return noised_ ? *noised_ : machine_->results(); }
  bool is_private() const { return private_ != nullptr; }
  // What a private run has done and spent so far; nothing of a run that is not.
  std::optional<privacy::Report> privacy() const;
  std::int64_t rounds_run() const { return static_cast<std::int64_t>(sequence_); }
  // The round in progress; null while clients introduce themselves and at the end.
  const Round* round() const { return machine_ ? machine_->round() : nullptr; }
  std::int64_t iteration() const { return machine_ ? machine_->iteration() : 0; }
  const SizeValues& sizes() const { return sizes_; }
  const std::string& run() const { return identity_.run; }
  const std::vector<Departure>& departures() const { return departures_; }
  const std::optional<secure::Group>& group() const { return identity_.group; }

 private:
  enum class Phase : std::uint8_t { greeting, running, done };

  template <typename Fault = UnusableAnswer>
  [[noreturn]] void reject(std::size_t client, const std::string& reason) const;
  void greet(std::size_t client, const HelloMessage& message);
  std::int64_t take(std::size_t client, StateMessage message);  // how many numbers it holds
  void merge_waiting();
  void count_answer();
  void all_answered();
  void release();
  void begin_private();
  secure::Numbers masked_numbers() const;
  void ask();
  void draw();
  void require_maskable() const;
  std::vector<Tensor> values_to_send(const Round& round) const;
  std::int64_t take(std::size_t client, SecureReply message);
  void begin_masking();
  void new_epoch();
  void go_on_masking();
  std::string settings_hash() const;
  void restore(ByteReader& in);

  std::shared_ptr<const CompiledProgram> program_;
  Settings settings_;
  const std::atomic<bool>* stop_;
  RunIdentity identity_;
  std::string agreement_;
  std::vector<std::string> clients_;
  Phase phase_ = Phase::greeting;
  StartMessage greeting_;
  Bytes request_;
  std::uint64_t sequence_ = 0;  // rounds finished; also the number of the request in progress
  SizeValues sizes_;
  std::map<std::string, std::string> size_from_;
  std::vector<bool> answered_;
  std::vector<bool> left_;
  std::vector<bool> split_;  // by node of the program; where clients are guarded
  std::vector<bool> asked_;  // in this round
  std::vector<Departure> departures_;
  std::size_t answers_ = 0;
  std::shared_ptr<const privacy::PrivatePlan> private_;  // once sizes are known
  std::optional<privacy::RandomBits> random_;
  std::vector<std::uint32_t> ran_;  // the rounds of a private run, one after the other
  std::optional<Results> noised_;   // where noise is added to outputs
  std::vector<std::vector<MergeState>> waiting_;  // by client, until all before it are merged
  std::vector<MergeState> merged_;
  std::size_t merged_clients_ = 0;
  std::optional<Machine> machine_;
  std::optional<secure::Server> secure_;  // while states are masked
  std::uint32_t epoch_ = 0;               // of its keys
  std::size_t masking_departures_ = 0;    // clients that had left when they were made
  std::int64_t renewals_ = 0;             // of keys in this round
};

}  // namespace starfold
