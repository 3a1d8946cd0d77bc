// The ledger: what a node was asked and what left it, one JSON object on each line, each with the hash of the line before it. A
// second file, the head, holds number and hash of the last line, so that a ledger that lost its end is found.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "starfold/node/disk.h"
#include "starfold/node/ledger/line.h"

namespace starfold {

struct LedgerPlace {
  std::string path;
  std::string head;
  std::string node;  // its name
};

// Milliseconds since 1970.
using WallClock = std::function<std::int64_t()>;
std::int64_t system_clock_now();

// What a study has had so far.
struct Account {
  enum class Standing { none, pending, approved, denied };
  Standing standing = Standing::none;
  std::int64_t numbers = 0;   // sent
  std::int64_t bytes = 0;     // sent
  std::int64_t rounds = 0;    // answered
  std::int64_t refusals = 0;  // that count, since the last approval
  double epsilon = 0;         // spent
  double delta = 0;
};

// The last request of a run and its answer.
struct LastReply {
  std::string kind;
  std::string agreement;
  std::int64_t sequence = 0;
  std::optional<std::int64_t> round;
  std::string request;  // hashes
  std::string sent;
  std::string data;
  std::string received;
  double epsilon = 0;                                  // that the run has spent so far
  std::map<std::int64_t, std::int64_t> answered = {};  // how often, by round
};

// Lines one after the other, and whether each follows the one before.
class LedgerChain {
 public:
  // Takes the next line. Why it does not follow; empty: it does.
  std::string add(std::string_view text, LedgerLine& line);
  // How many lines there are, if none is missing: the number of the next.
  std::int64_t next() const { return next_; }
  const std::string& hash() const { return hash_; }  // of the last line
  const std::string& time() const { return time_; }  // of the last line

 private:
  std::int64_t next_ = 0;
  std::string hash_ = std::string(64, '0');
  std::string time_;
};

// A ledger that is written to. Not for several threads at once.
class Ledger {
 public:
  // Opens it, or begins it. A torn last line, which a crash leaves, is cut off, with a note in the ledger. RunError when another
  // process has it, its chain is broken, or it is behind its head: then it was rolled back.
  static Ledger open(LedgerPlace place, WallClock now = system_clock_now);
  // What it says so far, for whoever only asks: nothing is written, locked or put right, also while a node writes to it. Empty when
  // there is none yet. Nothing can be appended. RunError when the file cannot be read.
  static Ledger look(LedgerPlace place);

  // Adds a line; when this returns, it is on the disk. When it cannot be (the disk is full), the file is as it was and RunError is
  // thrown: then nothing may leave.
  void append(const LedgerEntry& entry);

  // What a study, or all together, have had.
  const Account& study(const std::string& agreement) const;
  const Account& total() const { return total_; }
  // What all studies with this plan have had, whatever their bindings.
  const Account& plan(const std::string& plan) const;
  // Of a run that is not long gone: thousands are remembered.
  std::optional<LastReply> run(const std::string& run) const;

  std::int64_t lines() const { return chain_.next(); }

 private:
  struct Repair;

  explicit Ledger(LedgerPlace place);
  Ledger(LedgerPlace place, WallClock now);
  Repair read();
  void repair(const Repair& repair);
  void write(LedgerLine line);
  bool write_head(const LedgerChain& chain) const;
  void require_own_file() const;
  void count(const LedgerEntry& entry);
  void remember(const LedgerEntry& entry);

  LedgerPlace place_;
  WallClock now_;
  Descriptor file_;
  Descriptor head_;
  std::int64_t size_ = 0;
  bool broken_ = false;  // what the disk holds is not known any more
  LedgerChain chain_;
  std::unordered_map<std::string, Account> accounts_;
  std::unordered_map<std::string, Account> plans_;
  std::unordered_map<std::string, std::string> plan_of_;  // by agreement
  Account total_;
  struct Run {
    LastReply last;
    std::int64_t stamp = 0;
  };
  std::unordered_map<std::string, Run> runs_;
  std::map<std::int64_t, std::string> order_;  // of runs, the latest last
  std::int64_t stamp_ = 0;
};

// What can be said about a ledger without writing to it, also while a node does.
struct Verdict {
  bool ok = true;
  std::int64_t lines = 0;
  std::vector<std::string> problems;  // what was changed, is missing or out of order
  std::vector<std::string> notes;     // what may be so, and should be known
};
Verdict verify_ledger(const std::string& path, const std::string& head);
// What no check of the two files can show.
std::string ledger_limits();

// Calls `each` for every whole line: its text, and what it says, null where that cannot be read. RunError when the file cannot be.
void read_ledger(const std::string& path,
                 const std::function<void(std::string_view text, const LedgerLine*)>& each);

}  // namespace starfold
