// What crosses between server and clients: five kinds of message, one byte layout.
//
//   "STARFOLD"  version:u16  kind:u16  length:u64  body  checksum:u64
//
// Numbers are little-endian; the checksum is the beginning of the SHA-256 of everything before it.
// Every message carries the plan hash, so that nobody answers a question about another program.
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

inline constexpr std::uint16_t message_version = 1;

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
// Client: no, and why in one sentence that holds no record's value.
struct RefuseMessage {
  std::string reason;
};

using Message =
    std::variant<StartMessage, HelloMessage, EncodeMessage, StateMessage, RefuseMessage>;

Bytes encode_message(const Message& message);

// The message in these bytes; RunError when they are cut, changed, of another version or no message.
Message decode_message(std::string_view bytes);

}  // namespace starfold
