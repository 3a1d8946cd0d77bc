// What crosses between server and clients: five kinds of message, one byte layout.
//
//   "STARFOLD"  version:u16  kind:u16  length:u64  body  checksum:u64
//
// Numbers are little-endian; the checksum is the beginning of the SHA-256 of everything before it.
// Every message but a refusal carries the plan hash, so that nobody answers a question about another
// program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starfold/merge/monoid.h"
#include "starfold/types/size.h"

namespace starfold {

inline constexpr std::uint16_t message_version = 2;

using Bytes = std::string;

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
  bool optimize = true;
};
// Client: I arrived at the same plan, and these are the sizes of my data.
struct HelloMessage {
  std::string plan_hash;
  SizeValues sizes;
};
// Server: encode this round with these shared values, in the order of Round::receives.
struct EncodeMessage {
  std::string plan_hash;
  std::uint64_t sequence = 0;  // counts the requests of a run
  std::uint32_t round = 0;
  std::vector<Tensor> values;
};
// Client: my part of the shared state, in the order of Round::merges.
struct StateMessage {
  std::string plan_hash;
  std::uint64_t sequence = 0;
  std::uint32_t round = 0;
  std::vector<MergeState> states;
};
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
};
inline constexpr std::size_t refusal_count = 12;

// A refusal in words; one fixed sentence each.
std::string_view sentence(Refusal refusal);

// Client: no. The detail stays with the client's owner (Node::trouble).
struct RefuseMessage {
  Refusal reason = Refusal::internal_error;
};

using Message =
    std::variant<StartMessage, HelloMessage, EncodeMessage, StateMessage, RefuseMessage>;

Bytes encode_message(const Message& message);

// How many numbers about records these states hold.
std::int64_t numbers_in(const std::vector<MergeState>& states);

// The message in these bytes; RunError when they are cut, changed, of another version or no message.
Message decode_message(std::string_view bytes);

}  // namespace starfold
