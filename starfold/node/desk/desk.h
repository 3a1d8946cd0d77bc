// The node's desk: where requests are decided on and answered. It reads the configured sources and writes the ledger; it
// knows nothing of sockets. Nothing leaves that was not written down before.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/base/allowance.h"
#include "starfold/data/memory.h"
#include "starfold/federation/node.h"
#include "starfold/node/approvals.h"
#include "starfold/node/config.h"
#include "starfold/node/ledger/ledger.h"
#include "starfold/node/replies.h"
#include "starfold/node/rules.h"
#include "starfold/support/support.h"

namespace starfold {

struct DeskOptions {
  int threads = 0;          // 0: as many as the machine has
  std::int64_t memory = 0;  // bytes for records; 0: half of the machine's
  bool dry = false;         // a trial: nothing is written down, and owners need not have approved
  // A trial of a study that masks its states: with whom. Here they are looked at as they are.
  std::optional<secure::Group> group = {};
};

// What goes back, and whether it tells by its time: a refusal that depends on records is held back until others would
// be through as well.
struct Answer {
  Bytes bytes;
  bool pad = false;
  bool written = true;  // whether the ledger has a line about a refusal of its own
};

class Desk {
 public:
  // Opens the ledger. RunError when it cannot be used.
  explicit Desk(NodeConfig config, DeskOptions options = {});
  ~Desk();

  // The answer to a request of this peer: description, hello, state or refusal. Never throws.
  Answer answer(std::string_view request, const std::string& peer);
  // Takes the policy of a node's file that was read again; sources and places stay as they are.
  void reload(const Policy& policy);

  const NodeConfig& config() const { return config_; }
  // What stood behind the last refusal; none when the last request was answered.
  const std::optional<Decision>& refused() const { return refused_; }

 private:
  struct Session;
  struct Request;

  Bytes dispatch(Request& request, Message message);
  Bytes describe() const;
  Bytes start(Request& request, const StartMessage& message);
  Bytes encode(Request& request, EncodeMessage message);
  Bytes secure(Request& request, const SecureRequest& message);
  Bytes mask(Request& request, Session& session, const secure::MaskRequest& asked);
  Bytes unmask(Request& request, Session& session, const SecureRequest& message);
  Bytes sent(Request& request, LedgerEntry line, const Message& answer, std::int64_t slot);
  std::unique_ptr<Session> open(Request& request, const StartMessage& message);
  void go_on(Session& session, const LastReply& last) const;
  void load(Session& session, const Bindings& bindings);
  void make_room();
  void let_one_go();
  std::optional<Bytes> kept(const Request& request, std::int64_t slot) const;
  std::optional<Bytes> repeated(const Request& request, const Session& session,
                                const EncodeMessage& message);
  void check_support(Session& session, const Round& round, const std::vector<Tensor>& received,
                     const StateMessage& state) const;
  void keep_own(const Request& request, const Session& session, const Round& round);
  void restore_own(const std::string& run, std::int64_t sequence, Session& session) const;
  Answer refuse(const Request& request, const Decision& decision);
  void note_pending(const Request& request, const Session& session, const std::string& bindings,
                    const std::string& reason);
  void take_up_decisions();
  LedgerEntry entry(const Request& request, const char* kind) const;
  void record(const LedgerEntry& entry);
  void note_unwritten();
  Account account(const Session& session) const;
  Account total() const;
  secure::Key trial_key() const;
  void charge(const Session& session, std::uint32_t round, LedgerEntry& line);
  Protection protection(const Session& session) const;
  std::optional<LastReply> last_reply(const std::string& run) const;
  Session* find(const std::string& run);
  Session& session_of(Request& request, const std::string& run);
  void keep(const std::string& run, std::unique_ptr<Session> session);

  NodeConfig config_;
  DeskOptions options_;
  std::string policy_hash_;
  std::optional<Ledger> ledger_;  // in a trial only looked at; there are no replies either
  std::optional<Replies> replies_;
  std::optional<Replies> private_;  // private states, kept as replies are
  std::optional<Approvals> approvals_;
  secure::Identity identity_;  // none in a trial
  Account trial_;              // what the study had in a trial
  mutable ProgramCache cache_;
  MemoryPlan memory_;
  // Bytes that all runs together may still keep: records, and what is computed of them once.
  std::shared_ptr<std::atomic<std::int64_t>> room_;
  std::map<std::string, std::unique_ptr<Session>> sessions_;  // by run
  std::uint64_t clock_ = 0;                                   // counts requests
  std::optional<Decision> refused_;
  Allowance refusal_lines_{1000, 1.0};
  std::int64_t unwritten_ = 0;  // refusals without a line since the last line
};

}  // namespace starfold
