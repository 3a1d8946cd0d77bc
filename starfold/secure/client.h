// A member's side of secure aggregation: what it says, what it refuses to say. It knows nothing of messages, disks or records, and
// keeps its secrets in memory alone: who is started anew has none, and new ones are made.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "starfold/secure/protocol.h"

namespace starfold::secure {

// A member's identity: the private half of the key that studies pin.
using Identity = std::shared_ptr<const Secret>;

class Client {
 public:
  // One run. Requests below `next` were unmasked before: nothing is masked for them again. ProtocolError when the group is none,
  // or does not have the member with this identity.
  Client(Group group, Identity identity, std::string_view run, std::string_view agreement,
         std::uint64_t next = 0);

  // The five steps. The same request again gets the same reply. ProtocolError when one is not allowed; then nothing has changed.
  KeysReply keys(const KeysRequest& request);
  ShareReply share(const ShareRequest& request);
  // Whether a round may be masked; to be asked before records are looked at.
  void check(const MaskRequest& request);
  // Takes the input of a round that was checked, and gives it back masked. The layout follows from the plan.
  MaskedReply mask(const MaskRequest& request, const Layout& layout, Words input);
  SignReply sign(const SignRequest& request);
  // Whether shares may be given away; to be asked, and the answer written down, before they are.
  void check(const UnmaskRequest& request);
  UnmaskReply unmask(const UnmaskRequest& request);

  const Group& group() const { return group_; }
  std::uint32_t member() const { return member_; }
  // No request below this is masked any more.
  std::uint64_t next() const { return next_; }

 private:
  // The secrets of one round.
  struct Round {
    Secret masking;
    Secret seed;
    // By member who shared: of its masking key and of its seed.
    std::map<std::uint32_t, Share> masking_shares;
    std::map<std::uint32_t, Share> seed_shares;

    Round() = default;
    ~Round() { forget(); }
    Round(Round&&) = default;
    Round& operator=(Round&&) = delete;
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;
    void forget();
  };
  struct Epoch {
    KeysRequest request;
    Secret sealing;
    std::vector<Round> rounds;
    KeysReply keys;
    std::vector<KeysReply> all_keys;  // empty until shares were asked for
    Key keys_hash{};
    ShareReply shares;
    std::vector<std::uint32_t> sharers;  // empty until shares came
  };
  // The round that was masked last.
  struct Masked {
    std::uint64_t sequence = 0;
    Moment moment;
    Key numbers{};                                         // the hash of the input
    std::optional<std::vector<std::uint32_t>> signed_for;  // the one set other than everyone
    std::optional<std::vector<std::uint32_t>> unmasked_for;
    MaskedReply reply;
    UnmaskReply unmasked;
  };

  Epoch& epoch(std::uint32_t number);
  Round& round(Epoch& epoch, std::uint64_t sequence) const;
  void check_keys(const ShareRequest& request, const Epoch& epoch) const;
  void take_shares(Epoch& epoch, const std::vector<Sealed>& shares) const;
  void check_present(const std::vector<std::uint32_t>& present, const Epoch& epoch) const;
  Masked& masked(std::uint32_t epoch, std::uint64_t sequence);
  Moment moment(const Epoch& epoch, const MaskRequest& request) const;
  bool asked_again(const UnmaskRequest& request);

  Group group_;
  Identity identity_;
  std::uint32_t member_ = 0;
  Key session_{};
  std::uint64_t next_ = 0;
  std::optional<Epoch> epoch_;
  std::optional<Masked> masked_;
};

}  // namespace starfold::secure
