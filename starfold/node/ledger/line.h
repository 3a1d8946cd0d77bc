// The lines of a ledger, as values and as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace starfold {

// What a node was asked and what it did. Texts may come from strangers: they are cut and made printable when they are written.
// Hashes are SHA-256 in hexadecimal digits. What is empty or 0 is not written.
struct LedgerEntry {
  // "start", "encode", "approve", "deny", "pending", "note"; where states are masked also "keys", "share", "sign", "unmask", and
  // "again" for a state that is masked once more
  std::string kind;
  std::string study;      // its name, for people
  std::string agreement;  // the hash that identifies the study
  std::string peer;       // who asked
  std::string run;
  std::optional<std::int64_t> sequence;  // of the request in its run
  std::optional<std::int64_t> round;
  std::string plan;          // hashes: of the plan,
  std::string policy;        // the policy,
  std::string data;          // the data,
  std::string received;      // the shared state that came with the request,
  std::string request;       // the whole request
  std::string decision;      // "sent", "refused", "pending", "approved", "denied"
  std::string rule;          // why
  bool counted = false;      // a refusal that depends on records, and counts against max_refusals
  std::string detail;        // for the owner alone
  std::int64_t numbers = 0;  // released
  std::int64_t bytes = 0;    // of the reply
  std::string shapes;        // of what was released: "[3] [3,3]"
  std::string masked;        // with whom, where a message is masked: "5 clients, threshold 3"
  std::string sent;          // the hash of the reply
  double epsilon = 0;        // spent
  double delta = 0;
  std::optional<std::int64_t> numbers_left;  // for this study, after this
  std::optional<std::int64_t> rounds_left;
  std::optional<double> epsilon_left;  // for all studies, after this
  std::optional<double> delta_left;
};

// An entry with its place in the chain.
struct LedgerLine {
  std::int64_t seq = 0;
  std::string time;         // UTC, RFC 3339, with milliseconds
  bool clock_back = false;  // the clock said less than for the line before
  std::string node;         // only in the first line: whose ledger this is
  std::int64_t format = 0;  // and how it is written
  LedgerEntry entry;
  std::string prev;  // the hash of the line before, without its end
};

inline constexpr std::int64_t ledger_format = 1;
// Longer lines are none of ours.
inline constexpr std::size_t longest_ledger_line = 1 << 16;

// One JSON object without the end of the line.
std::string format_line(const LedgerLine& line);
// What such a text says; none where it is not one that format_line makes.
std::optional<LedgerLine> parse_line(std::string_view text);

// Milliseconds since 1970 in RFC 3339.
std::string format_time(std::int64_t milliseconds);

}  // namespace starfold
