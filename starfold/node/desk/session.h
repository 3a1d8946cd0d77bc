// What the parts of the desk share: a run that was started, a request on its way, refusals.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starfold/base/hash.h"
#include "starfold/node/desk/desk.h"

namespace starfold {

// A refusal on its way out of the functions that answer a request.
struct Refused {
  Decision decision;
};

[[noreturn]] inline void refuse_request(Refusal reason, std::string detail) {
  throw Refused{{reason, {}, std::move(detail)}};
}

inline void require(const Forbidden& forbidden) {
  if (forbidden) throw Refused{*forbidden};
}

// A refusal of the node, as the desk tells of it: whether records can be folded depends on them.
[[noreturn]] inline void pass_on(const RefuseMessage& refusal, const Node& node) {
  const bool records = refusal.reason == Refusal::cannot_encode;
  throw Refused{{records ? Refusal::policy : refusal.reason, records ? "records" : "",
                 node.trouble()->what()}};
}

// Whether what leaves has this client's own noise. It then protects single records better than the rules on support, whose
// refusals would tell about them without noise.
inline bool has_own_noise(const std::optional<privacy::Terms>& terms) {
  if (!terms) return false;
  const privacy::At at = terms->promise.at;
  return at == privacy::At::client || at == privacy::At::distributed;
}

inline void add_spending(LedgerEntry& line, const LedgerEntry& spending) {
  line.epsilon = spending.epsilon;
  line.delta = spending.delta;
  line.epsilon_left = spending.epsilon_left;
  line.delta_left = spending.delta_left;
}

// A group as the ledger names it.
inline std::string group_text(const secure::Group& group) {
  return fmt::format("{} clients, threshold {}", group.members.size(), group.answers());
}

// Of the shared values that a request brings.
inline std::string values_hash(const std::vector<Tensor>& values) {
  ByteWriter bytes;
  bytes.tensors(values);
  return sha256_hex(bytes.take());
}

// A part of what all runs may keep, as long as it is there.
class TakenRoom {
 public:
  TakenRoom() = default;
  TakenRoom(std::shared_ptr<std::atomic<std::int64_t>> room, std::int64_t bytes)
      : room_(std::move(room)), bytes_(bytes) {
    *room_ -= bytes_;
  }
  TakenRoom(TakenRoom&& other) noexcept
      : room_(std::move(other.room_)), bytes_(std::exchange(other.bytes_, 0)) {}
  TakenRoom& operator=(TakenRoom&& other) noexcept {
    std::swap(room_, other.room_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~TakenRoom() {
    if (room_) *room_ += bytes_;
  }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> room_;
  std::int64_t bytes_ = 0;
};

// A run that was started.
struct Desk::Session {
  std::string greeting;  // the hash of the request that started it,
  Bytes hello;           // and the answer
  std::string study;
  std::string agreement;
  std::string plan;
  const NodeSource* source = nullptr;
  std::string data;  // the hash of the source
  std::shared_ptr<const CompiledProgram> program;
  TakenRoom room;  // of its records
  std::unique_ptr<Node> node;
  std::map<std::string, std::int64_t> records;    // usable ones, by record set
  std::optional<privacy::Terms> terms;            // of a private run,
  double epsilon = 0;                             // what it has spent so far,
  std::map<std::int64_t, std::int64_t> answered;  // and how often each round was answered
  std::unique_ptr<Support> support;
  std::optional<secure::Group> group;  // where states are masked
  std::string last_step;  // the hash of the last request for keys, shares or signatures
  // What was answered before this node was started, until the run goes on from there.
  std::optional<LastReply> behind;
  std::uint64_t used = 0;
};

// A request, and what is known of it so far.
struct Desk::Request {
  std::string hash;
  std::string peer;
  std::string kind;
  std::string study;
  std::string run;
  std::string agreement;
  std::string plan;
  std::string data;
  std::string received;
  std::optional<std::int64_t> sequence;
  std::optional<std::int64_t> round;
};

}  // namespace starfold
