// The client's side: compiles the program itself, encodes its own records, refuses the rest. It knows
// nothing of sockets, threads or files.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "starfold/base/error.h"
#include "starfold/federation/program.h"
#include "starfold/ops/standard.h"
#include "starfold/plan/order.h"
#include "starfold/privacy/private_plan.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/secure/client.h"

namespace starfold {

// Lets nodes of one process share the compilation of one program text, and of its encoders for the
// same sizes.
class ProgramCache {
 public:
  explicit ProgramCache(const Signature& signature = standard_signature())
      : signature_(signature) {}
  std::shared_ptr<const CompiledProgram> get(const ProgramText& text, const Planning& planning);
  std::shared_ptr<const Encoders> encoders(const std::shared_ptr<const CompiledProgram>& program,
                                           const SizeValues& sizes);
  // A private plan with its encoders. NotPrivate when the plan cannot be private.
  struct Private {
    std::shared_ptr<const privacy::PrivatePlan> plan;
    std::shared_ptr<const Encoders> encoders;
  };
  Private make_private(const std::shared_ptr<const CompiledProgram>& program,
                       const SizeValues& sizes, const Bytes& terms);

 private:
  const Signature& signature_;
  std::shared_ptr<const CompiledProgram> last_;
  std::shared_ptr<const Encoders> encoders_;
  std::shared_ptr<const Plan> encoders_plan_;
  SizeValues encoders_sizes_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  Private private_;
  std::shared_ptr<const Plan> private_of_;
  SizeValues private_sizes_;
  Bytes private_terms_;
};

// How a node makes noise.
struct NoiseOptions {
  std::optional<std::uint64_t> seed = std::nullopt;  // for tests: then nothing is private
  std::int64_t clients =
      1;  // a node that stands for several, in a simulation, makes noise for each
};

class Node {
 public:
  // With an identity it can take part in runs whose states are masked.
  Node(Client client, ProgramCache& cache, EngineOptions options = {},
       secure::Identity identity = nullptr, NoiseOptions noise = {});

  // The answer to a request, always a message: hello, state, or a refusal with one of the fixed
  // reasons.
  Bytes handle(std::string_view request);
  // The same for a request that was read already.
  Message answer(Message request);
  // The next request has this number, and its round follows `after`; any round when that is not known. For a run
  // that began before this node was made.
  void go_on(std::uint64_t sequence, std::optional<std::uint32_t> after = std::nullopt);

  // Where states are masked, what `answer` does in two steps, so that who owns the data can look at the state in between: the state
  // as it is, which must not leave, and the masked one.
  Message unmasked_state(const secure::MaskRequest& request);
  Message mask(const secure::MaskRequest& request, const StateMessage& state);
  // Requests below this one were unmasked: they are over. For a run that began before this node was made.
  void masked_before(std::uint64_t next);
  // What stood behind a refusal of the last request, for the owner of the data alone: it may hold counts
  // and sizes, and names the client and, where there is one, the place in the program.
  const std::optional<RunError>& trouble() const { return trouble_; }

  const Client& client() const { return client_; }
  // What was started; null before.
  const CompiledProgram* program() const { return program_.get(); }
  const SizeValues& sizes() const { return sizes_; }
  // What encodes its records and has what stays here: private states, kept results. Of a program that was started.
  const Engine& engine() const { return private_engine_ ? *private_engine_ : *engine_; }
  // The private states that a node with the same records has written.
  void restore_private(ByteReader& saved);
  // A round of the program by its number, and the values it received by node.
  const Round& round(std::uint32_t number) const { return *rounds_.at(number); }

  // The private plan of what was started; null when it is not private. NotPrivate when it cannot be.
  const privacy::PrivatePlan* private_plan();

  // Lets go of the arrays as they came, once the program that was started has laid them out. No other
  // program can be started after that.
  void release_arrays();
  // Its arrays, as they came or from what was laid out.
  Arrays arrays() const;

 private:
  Message dispatch(Message& request);
  template <typename Step>
  Message guarded(const Step& step);
  Message take_step(const SecureRequest& request);
  SecureReply reply(secure::Reply body) const;
  [[noreturn]] void refuse(Refusal reason, const std::string& detail) const;
  Message start(const StartMessage& message);
  void join(const secure::Group& group);
  Message encode(EncodeMessage& message);
  void check_order(const EncodeMessage& message) const;
  bool is_repeated(const EncodeMessage& message) const;
  std::vector<MergeState> states_of(std::uint32_t round, const std::vector<Tensor>& values);
  void prepare_private();

  Client client_;
  ProgramCache& cache_;
  EngineOptions options_;
  std::shared_ptr<const CompiledProgram> program_;
  std::string agreement_;
  std::string run_;
  SizeValues sizes_;
  std::vector<const Round*> rounds_;
  RoundOrder order_;
  std::uint64_t sequence_ = 0;         // of the next request
  std::optional<EncodeMessage> last_;  // that was answered: it may be asked again
  std::optional<std::uint32_t> last_round_;
  bool any_round_ = false;  // may come next
  bool sampled_ = false;    // other rounds may have been asked of others
  std::unique_ptr<Engine> engine_;
  NoiseOptions noise_;
  Bytes terms_;                                          // of a private run,
  std::shared_ptr<const privacy::PrivatePlan> private_;  // and, once it is needed, its plan,
  std::vector<const Round*> private_rounds_;             // the rounds of its encoders
  std::unique_ptr<Engine> private_engine_;               // and what runs them
  std::optional<privacy::RandomBits> random_;
  std::optional<StateMessage> last_state_;  // the answer to `last_`, where noise makes it unique
  secure::Identity identity_;
  std::optional<secure::Client> secure_;  // of a run whose states are masked
  std::optional<RunError> trouble_;
};

}  // namespace starfold
