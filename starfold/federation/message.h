// What crosses between server and clients: nine kinds of message, one byte layout.
//
//   "STARFOLD"  version:u16  kind:u16  length:u64  body  checksum:u64
//
// Numbers are little-endian; the checksum is the beginning of the SHA-256 of everything before it.
// Every message about a program carries what both sides agreed on, so that nobody answers a question about another
// one, and the identity of the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starfold/merge/monoid.h"
#include "starfold/opt/planning.h"
#include "starfold/secure/protocol.h"
#include "starfold/tensor/bytes.h"
#include "starfold/types/size.h"

namespace starfold {

inline constexpr std::uint16_t message_version = 4;

// A program as it travels: its text and that of its own modules. Never a plan: each side compiles.
struct ProgramText {
  std::string name;
  std::string text;
  std::map<std::string, std::string> modules;
  friend bool operator==(const ProgramText&, const ProgramText&) = default;
};

// Server: this is the program; these sizes are fixed already.
struct StartMessage {
  std::string plan_hash;
  ProgramText program;
  SizeValues sizes;
  Planning planning;
  std::string run = {};       // its identity: 32 hexadecimal digits; empty in one process
  std::string study = {};     // its name, for the owner's eyes
  std::string source = {};    // the name of the client's table, never a path
  std::string bindings = {};  // which columns become which input (data/binding_text.h)
  std::optional<secure::Group> group = {};  // where states are masked: who takes part
  bool sampled =
      false;  // rounds are asked of some clients only, so that numbers of requests may skip
  Bytes privacy = {};  // the terms of a private run (privacy/terms.h)
};
// Client: I arrived at the same plan, and these are the sizes of my data.
struct HelloMessage {
  std::string agreement;
  SizeValues sizes;
  std::string run = {};
};
// Server: encode this round with these shared values, in the order of Round::receives.
struct EncodeMessage {
  std::string agreement;
  std::uint64_t sequence = 0;  // counts the requests of a run
  std::uint32_t round = 0;
  std::vector<Tensor> values;
  std::string run = {};
};
// Client: my part of the shared state, in the order of Round::merges.
struct StateMessage {
  std::string agreement;
  std::uint64_t sequence = 0;
  std::uint32_t round = 0;
  std::vector<MergeState> states;
  std::string run = {};
};
// Anyone: what have you, and what do you let out?
struct DescribeMessage {};
// Client: my sources with their columns, and my policy; JSON (node/description.h). Nothing in it comes from a record.
struct DescriptionMessage {
  std::string text;
};

// Server: the next step of secure aggregation (privacy/protocol.h).
struct SecureRequest {
  std::string agreement;
  secure::Request body;
  std::string run = {};
};
// Client: its part of that step. The one that holds numbers about records holds them masked.
struct SecureReply {
  std::string agreement;
  secure::Reply body;
  std::string run = {};
};

// What both sides agree on: the plan's hash, together with the bindings, the group that masks and the terms of privacy, where there
// are any.
std::string agreement(const std::string& plan_hash, std::string_view bindings,
                      const std::optional<secure::Group>& group = {},
                      std::string_view privacy = {});

// Why a client does not answer. The server learns which of these it is, and nothing else: what it
// learns of records is what the exposure table lists.
enum class Refusal : std::uint8_t {
  unreadable,       // the bytes are no message
  not_a_request,    // a message, but none that a client answers
  program_errors,   // the program does not compile
  another_plan,     // the same text gives another plan here
  data_misfit,      // the client's data do not fit the program or its sizes
  not_started,      // a round before any program
  another_program,  // a round of a program that was not started
  no_such_round,
  values_misfit,  // the shared values are not those of the round
  cannot_encode,  // the records cannot be folded: data or numerics
  no_resources,   // memory or threads
  internal_error,
  another_run,
  out_of_order,  // a round before its time, or a second question with the number of an answered one
  // What a client's policy forbids, as far as it follows from program, columns and sizes alone.
  no_such_source,
  columns,
  merges,
  max_numbers,
  max_rounds,
  programs,
  pending,
  denied,
  max_refusals,
  privacy,
  budget,
  secure_aggregation,
  policy,  // everything that depends on records: one sentence, so that it tells nothing about them
  keys_lost,        // a step of secure aggregation whose keys this client has no more
  broken_protocol,  // one that secure aggregation does not allow
  local_blocks,     // what single clients computed is folded out
};
inline constexpr std::size_t refusal_count = 30;

// A refusal in words; one fixed sentence each.
std::string_view sentence(Refusal refusal);
// The rule of the policy behind it; empty when it is not a matter of policy.
std::string_view rule_of(Refusal refusal);

// Client: no. The detail stays with the client's owner (Node::trouble).
struct RefuseMessage {
  Refusal reason = Refusal::internal_error;
};

using Message = std::variant<StartMessage, HelloMessage, EncodeMessage, StateMessage, RefuseMessage,
                             DescribeMessage, DescriptionMessage, SecureRequest, SecureReply>;

Bytes encode_message(const Message& message);

// Whether bytes say that they are a client's greeting; they may be anything else besides.
bool is_greeting(std::string_view bytes);

// The message in these bytes; RunError when they are cut, changed, of another version or no message.
Message decode_message(std::string_view bytes);

}  // namespace starfold
