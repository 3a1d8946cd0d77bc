// The server's side of secure aggregation: who is asked what, who answered, and the sum once enough have. It never holds an input: what
// it is given is masked, and what it can take away are the masks of the sum alone.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "starfold/secure/protocol.h"

namespace starfold::secure {

// Too few members are left to go on.
class TooFew : public RunError {
 public:
  using RunError::RunError;
};
// A reply that cannot be used; the member may be asked again.
class UnusableReply : public RunError {
 public:
  using RunError::RunError;
};
// One to a question that is over.
class LateReply : public UnusableReply {
 public:
  using UnusableReply::UnusableReply;
};

class Server {
 public:
  enum class Stage : std::uint8_t { keys, share, ready, mask, sign, unmask, done };

  // Begins an epoch with those who are there: keys for so many rounds from request `first` on.
  Server(Group group, std::string_view run, std::string_view agreement, std::uint32_t epoch,
         std::uint64_t first, std::uint32_t rounds, const std::vector<bool>& there);

  // Begins a round; the epoch is ready or the round before is done. False when there are no keys for it: a new epoch is needed.
  bool begin(std::uint64_t sequence, std::uint32_t round, std::vector<Tensor> values,
             Layout layout);

  Stage stage() const { return stage_; }
  std::uint32_t epoch() const { return epoch_; }
  // Whether an answer of this member is wanted now, and the question.
  bool awaits(std::uint32_t member) const { return state_[member] == State::awaited; }
  Request request(std::uint32_t member) const;
  // Takes a reply. When it is the last that was awaited, the next stage begins.
  void absorb(std::uint32_t member, Reply reply);
  // Goes on without this member's answer: in this stage and all later ones of the epoch, or, when that is to unmask, in this one.
  // TooFew when that leaves too few.
  void drop(std::uint32_t member);
  // Whether those who have answered, and will, are enough without it.
  bool can_spare(std::uint32_t member) const;

  // Whose inputs are in the sum, and the sum; once the round is done.
  const std::vector<std::uint32_t>& present() const { return present_; }
  const Words& sum() const { return sum_; }

  // A round that is being unmasked, for a server that is started anew: it asks the same again.
  bool can_save() const { return stage_ == Stage::unmask; }
  void save(ByteWriter& out) const;
  static Server restore(Group group, std::string_view run, std::string_view agreement,
                        ByteReader& in);

 private:
  enum class State : std::uint8_t { absent, awaited, answered };

  void take(std::uint32_t member, const KeysReply& reply);
  void take(std::uint32_t member, ShareReply& reply);
  void take(std::uint32_t member, MaskedReply& reply);
  void take(std::uint32_t member, const SignReply& reply);
  void take(std::uint32_t member, UnmaskReply& reply);
  void go_on();
  void ask(const std::vector<std::uint32_t>& members, Stage stage);
  std::vector<std::uint32_t> answered() const;
  const KeysReply& keys_of(std::uint32_t member) const;
  void require_enough(std::size_t count, std::size_t least) const;
  void remove_masks();
  void remove_own(std::uint32_t member, const Secret& seed);
  void remove_shared(std::uint32_t missing, const Secret& masking);

  Group group_;
  Key session_{};
  std::uint32_t epoch_ = 0;
  std::uint64_t first_ = 0;
  std::uint32_t rounds_ = 0;
  Stage stage_ = Stage::keys;
  std::vector<State> state_;
  std::vector<KeysReply> keys_;
  Key keys_hash_{};
  std::map<std::uint32_t, std::map<std::uint32_t, Bytes>> sealed_;  // by receiver, by sender
  std::vector<std::uint32_t> sharers_;
  std::set<std::uint32_t> delivered_;  // who has the shares of the others

  // The round in progress.
  Moment moment_;
  std::vector<Tensor> values_;
  Layout layout_;
  Words sum_;
  std::vector<std::uint32_t> present_;
  std::map<std::uint32_t, Signature> signatures_;
  std::map<std::uint32_t, std::vector<Share>> shares_;  // by who gave them
};

}  // namespace starfold::secure
