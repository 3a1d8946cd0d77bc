// Secure aggregation as Bonawitz et al. (2017) have it, on the complete graph, with signatures and the round of consistency: what is
// said in its five steps, and what every key and signature in it is bound to. docs/secure-aggregation.md explains it.
//
//   keys     everyone: public keys for some rounds to come, signed
//   share    everyone: shares of the secrets behind them, sealed for each other member
//   mask     everyone: its input under a mask of its own and one with each other member
//   sign     only when somebody is missing: those who are left sign who that is
//   unmask   everyone: shares of own masks of who is there, of masking keys of who is missing, never both
//
// Keys are made for several rounds at once (an epoch), each with secrets of its own, so that a round takes two steps when nobody is
// missing: with its masked input every member signs that it agrees if everybody is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/secure/shamir.h"
#include "starfold/secure/words.h"
#include "starfold/tensor/tensor.h"

namespace starfold::secure {

inline constexpr std::uint32_t least_members = 3;  // of two, each learns the other's input
inline constexpr std::uint32_t most_members = 1000;
inline constexpr std::uint32_t most_rounds_of_epoch = 64;

// Who takes part, with the keys that the study pins, and how many must answer. Everyone knows it from the study.
struct Member {
  std::string name;
  Key key{};
  friend bool operator==(const Member&, const Member&) = default;
};
struct Group {
  std::uint32_t threshold = 0;  // at least so many; see answers()
  std::uint32_t minimum_clients = least_members;
  std::vector<Member> members;
  friend bool operator==(const Group&, const Group&) = default;

  // How many must answer so that nobody's secrets are given away twice, also to a server that lies: more than half, or what
  // the study asks for if that is more.
  std::uint32_t answers() const;
  // Over how many inputs a sum must be.
  std::uint32_t inputs() const;
};
// Why a group is none; empty when it is one.
std::string wrong_with(const Group& group);
// The group as one text, for the hash that all agree on.
std::string canonical(const Group& group);

void write(ByteWriter& out, const Group& group);
Group read_group(ByteReader& in);

// --- what is said ---------------------------------------------------------------------------------

// Requests are the server's, replies the members'. Every message is about one epoch of one run.
struct KeysRequest {
  std::uint32_t epoch = 0;
  std::uint64_t first = 0;   // the number of the first request that these keys are for,
  std::uint32_t rounds = 1;  // and for how many
};
struct KeysReply {
  std::uint32_t epoch = 0;
  std::uint64_t first = 0;
  std::uint32_t member = 0;
  Key sealing{};             // shares for this member are sealed with it
  std::vector<Key> masking;  // by round: masks with the others come from it
  std::vector<Key> seeds;    // by round: the hash of the seed of its own mask
  Signature signature{};
};

struct ShareRequest {
  std::uint32_t epoch = 0;
  std::vector<KeysReply> keys;  // of all who gave some, by member
};
struct Sealed {
  std::uint32_t member = 0;  // to whom it goes, or from whom it came
  Bytes text;
};
struct ShareReply {
  std::uint32_t epoch = 0;
  std::vector<Sealed> shares;  // for every other member with keys
};

struct MaskRequest {
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;  // the number of the request in the run
  std::uint32_t round = 0;     // of the plan
  std::vector<Tensor> values;  // the shared values of the round
  std::vector<Sealed> shares;  // in the first round of an epoch: those for this member
};
struct MaskedReply {
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint32_t round = 0;
  Words masked;
  Signature everyone{};   // "I agree if all who shared are there"
  Signature signature{};  // of the masked numbers
};

struct SignRequest {
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::vector<std::uint32_t> present;  // whose masked inputs arrived
};
struct SignReply {
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  Signature signature{};
};

struct Signed {
  std::uint32_t member = 0;
  Signature signature{};
};
struct UnmaskRequest {
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::vector<std::uint32_t> present;
  std::vector<Signed> signatures;  // of the same members, over the same set
};
struct UnmaskReply {
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  // For every member who shared, in their order: of the seed of its own mask when it is present, else of its masking key.
  std::vector<Share> shares;
};

using Request = std::variant<KeysRequest, ShareRequest, MaskRequest, SignRequest, UnmaskRequest>;
using Reply = std::variant<KeysReply, ShareReply, MaskedReply, SignReply, UnmaskReply>;

void write(ByteWriter& out, const Request& request);
void write(ByteWriter& out, const Reply& reply);
// RunError when the bytes are something else.
Request read_request(ByteReader& in);
Reply read_reply(ByteReader& in);

std::uint32_t epoch_of(const Request& request);
std::uint32_t epoch_of(const Reply& reply);

// --- what keys and signatures are bound to --------------------------------------------------------

// The run and what was agreed on in it: program, bindings, group.
Key session_of(std::string_view run, std::string_view agreement);

// One round, as every member must see it.
struct Moment {
  Key session{};
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint32_t round = 0;
  Key values{};  // the hash of the shared values sent
  Key keys{};    // the hash of all keys of the epoch

  std::string text() const;
};
Key hash_of(const std::vector<Tensor>& values);
Key hash_of(const std::vector<KeysReply>& keys);

// What a member signs: its keys, who is there, its masked numbers.
std::string signed_keys(const Key& session, const KeysReply& keys);
std::string signed_present(const Moment& moment, const std::vector<std::uint32_t>& sharers,
                           const std::vector<std::uint32_t>& present);
std::string signed_masked(const Moment& moment, std::uint32_t member, const Words& masked);

// The salt and the purposes of derived keys.
std::string_view salt_of(const Key& session);
std::string sealing_purpose(const Key& session, const Key& keys, std::uint32_t epoch,
                            std::uint32_t from, std::uint32_t to);
std::string own_mask(const Moment& moment, std::uint32_t member);
std::string shared_mask(const Moment& moment, std::uint32_t one, std::uint32_t other);
// The one with the smaller number adds the mask that two share, the other subtracts it.
Direction direction_of(std::uint32_t own, std::uint32_t other);

// A message that the protocol does not allow now, or at all. Nothing secret is in its words.
class ProtocolError : public RunError {
 public:
  using RunError::RunError;
};
// A request that needs keys which this member does not have, or has no more: it was started anew, or the epoch is over.
class KeysLost : public ProtocolError {
 public:
  using ProtocolError::ProtocolError;
};

}  // namespace starfold::secure
