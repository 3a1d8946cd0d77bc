#include "starfold/node/ledger/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/base/utf8.h"
#include "starfold/node/ledger/files.h"

namespace starfold {
namespace {

constexpr std::size_t remembered_runs = 10'000;

// Numbers of a line that no node writes would make the totals meaningless.
constexpr std::int64_t most = std::int64_t{1} << 53;
bool plausible(const LedgerEntry& entry) {
  constexpr double most_spent = 1e9;
  return entry.numbers >= 0 && entry.numbers <= most && entry.bytes >= 0 && entry.bytes <= most &&
         entry.epsilon >= 0 && entry.epsilon <= most_spent && entry.delta >= 0 &&
         entry.delta <= most_spent;
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw RunError(fmt::format("the ledger {} {}", printable(path), why));
}

}  // namespace

std::int64_t system_clock_now() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string LedgerChain::add(std::string_view text, LedgerLine& line) {
  const std::int64_t expected = next_++;
  const std::string before = std::exchange(hash_, sha256_hex(text));
  std::optional<LedgerLine> parsed = parse_line(text);
  if (!parsed || !plausible(parsed->entry) || parsed->seq < 0 || parsed->seq > most)
    return fmt::format("what stands where seq {} should is not a line that a node writes",
                       expected);
  line = std::move(*parsed);
  time_ = line.time;
  next_ = line.seq + 1;
  if (line.seq > expected) {
    return fmt::format("before the line with seq {} {} missing", line.seq,
                       line.seq == expected + 1 ? std::string("one is")
                                                : fmt::format("{} are", line.seq - expected));
  }
  if (line.seq < expected)
    return fmt::format("the line with seq {} stands where seq {} should", line.seq, expected);
  if (line.prev != before && expected > 0)
    return fmt::format(
        "the line with seq {} does not follow the one before: one of them was changed", line.seq);
  if (expected == 0 &&
      (line.prev != before || line.entry.kind != "ledger" || line.format != ledger_format))
    return "the first line does not say that this is a ledger of this version";
  return "";
}

// What opening found to be put right.
struct Ledger::Repair {
  std::int64_t good = 0;   // bytes of whole lines
  std::string torn;        // what follows them
  std::int64_t head = -1;  // the seq that the head names
  std::vector<std::string> notes;
};

Ledger::Ledger(LedgerPlace place, WallClock now) : place_(std::move(place)), now_(std::move(now)) {
  constexpr int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  file_ = Descriptor(::open(place_.path.c_str(), flags, S_IRUSR | S_IWUSR));
  struct stat info {};
  if (!file_ || ::fstat(file_.number(), &info) != 0)
    fail(place_.path, fmt::format("cannot be opened: {}", system_reason()));
  if (!S_ISREG(info.st_mode)) fail(place_.path, "is not a regular file");
  if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0)
    fail(place_.path, errno == EWOULDBLOCK
                          ? std::string("is in use by another process; two nodes cannot share one")
                          : fmt::format("cannot be locked: {}", system_reason()));
}

Ledger::Ledger(LedgerPlace place) : place_(std::move(place)), broken_(true) {}

Ledger Ledger::look(LedgerPlace place) {
  Ledger ledger(std::move(place));
  if (!std::filesystem::exists(ledger.place_.path)) return ledger;
  read_ledger(ledger.place_.path, [&](std::string_view, const LedgerLine* line) {
    if (line != nullptr && plausible(line->entry)) ledger.count(line->entry);
  });
  return ledger;
}

Ledger Ledger::open(LedgerPlace place, WallClock now) {
  Ledger ledger(std::move(place), std::move(now));
  ledger.repair(ledger.read());
  return ledger;
}

Ledger::Repair Ledger::read() {
  const HeadFile head = read_head(place_.head);
  const std::int64_t head_seq = head.head ? head.head->seq : -1;
  LineReader lines(file_.number(), place_.path);
  Repair repair;
  repair.head = head_seq;
  while (lines.next()) {
    // A crash of the machine may leave zeros where the last line was to be.
    if (chain_.next() > head_seq && lines.line().find('\0') != std::string_view::npos) {
      repair.torn = std::string(lines.line()) + "\n";
      if (!lines.next() && lines.rest().empty()) break;
      fail(place_.path, "is broken: it holds zeros");
    }
    LedgerLine line;
    if (const std::string problem = chain_.add(lines.line(), line); !problem.empty())
      fail(place_.path, fmt::format("is broken: {}; nothing is written to it. `starfold node "
                                    "ledger --verify` says more",
                                    problem));
    if (line.seq == 0 && line.node != place_.node)
      fail(place_.path, fmt::format("is that of node {}, not of {}", line.node, place_.node));
    if (line.seq == head_seq && chain_.hash() != head.head->hash)
      fail(place_.path, fmt::format("is not the one whose head is {}: the line with seq {} was "
                                    "changed",
                                    printable(place_.head), head_seq));
    repair.good = lines.end();
    count(line.entry);
  }
  if (repair.torn.empty()) repair.torn = lines.rest();
  if (repair.torn.size() > longest_ledger_line)
    fail(place_.path, "is broken: after its last line follows something that is no line");
  if (head_seq >= chain_.next())
    fail(place_.path,
         fmt::format("was rolled back: it ends with seq {}, and {} says that it had come to {}",
                     chain_.next() - 1, printable(place_.head), head_seq));
  const std::int64_t behind = chain_.next() - 1 - head_seq;
  if (head.exists && !head.head) {
    repair.notes.emplace_back(
        "the head of the ledger was damaged: a rollback would not have shown");
  } else if (!head.exists && behind > 1) {
    repair.notes.emplace_back(
        "the head of the ledger was missing: a rollback would not have shown");
  } else if (behind > 1) {
    repair.notes.push_back(fmt::format("the head of the ledger was {} lines behind it", behind));
  }
  return repair;
}

void Ledger::repair(const Repair& repair) {
  size_ = repair.good;
  if (!repair.torn.empty() &&
      (::ftruncate(file_.number(), size_) != 0 || ::fdatasync(file_.number()) != 0))
    fail(place_.path,
         fmt::format("has a torn last line that cannot be cut off: {}", system_reason()));
  head_ = Descriptor(
      ::open(place_.head.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!head_ || (repair.head < 0 && ::ftruncate(head_.number(), 0) != 0))
    fail(place_.path, fmt::format("needs its head {}, which cannot be written: {}",
                                  printable(place_.head), system_reason()));
  if (chain_.next() == 0) {
    LedgerLine first;
    first.entry.kind = "ledger";
    first.node = place_.node;
    first.format = ledger_format;
    write(std::move(first));
    sync_folder(folder_of(place_.path));
    sync_folder(folder_of(place_.head));
  }
  if (repair.head != chain_.next() - 1 && !write_head(chain_))
    fail(place_.path, fmt::format("has a head that cannot be written: {}", system_reason()));
  LedgerEntry note;
  note.kind = "note";
  if (!repair.torn.empty()) {
    note.detail = fmt::format("a torn last line of {} bytes was cut off; its SHA-256 was {}",
                              repair.torn.size(), sha256_hex(repair.torn));
    append(note);
  }
  for (const std::string& text : repair.notes) {
    note.detail = text;
    append(note);
  }
}

void Ledger::append(const LedgerEntry& entry) {
  if (!plausible(entry)) throw Bug("a ledger entry with impossible numbers");
  LedgerLine line;
  line.entry = entry;
  write(std::move(line));
  count(entry);
}

// Whoever replaced, shortened or extended the file while it is in use would make what is added here worthless.
void Ledger::require_own_file() const {
  struct stat open {};
  struct stat named {};
  if (broken_) fail(place_.path, "could not be written before; start the node again");
  if (::fstat(file_.number(), &open) != 0 || ::stat(place_.path.c_str(), &named) != 0 ||
      open.st_ino != named.st_ino || open.st_dev != named.st_dev)
    fail(place_.path, "was replaced while it was in use; nothing leaves this node");
  if (open.st_size != size_)
    fail(place_.path, "was changed while it was in use; nothing leaves this node");
}

bool Ledger::write_head(const LedgerChain& chain) const {
  const std::string text = format_head({chain.next() - 1, chain.hash()});
  return ::pwrite(head_.number(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

void Ledger::write(LedgerLine line) {
  require_own_file();
  line.seq = chain_.next();
  line.time = format_time(now_());
  line.clock_back = line.time < chain_.time();
  line.prev = chain_.hash();
  const std::string text = format_line(line);
  LedgerChain after = chain_;
  LedgerLine again;
  if (const std::string problem = after.add(text, again); !problem.empty())
    throw Bug("a line of the ledger cannot be read again: " + problem);
  const bool written = write_all(file_.number(), text + "\n");
  const bool synced = written && ::fdatasync(file_.number()) == 0;
  if (synced && write_head(after)) {
    chain_ = std::move(after);
    size_ += static_cast<std::int64_t>(text.size()) + 1;
    return;
  }
  const std::string reason = system_reason();
  const bool cut = ::ftruncate(file_.number(), size_) == 0 && ::fdatasync(file_.number()) == 0;
  // After a sync that failed, or a head that was half written, nobody knows what the disk holds.
  broken_ = written || !cut;
  fail(place_.path, fmt::format("cannot be written: {}; nothing leaves this node", reason));
}

void Ledger::count(const LedgerEntry& entry) {
  const auto add = [&](Account& account) {
    if (entry.decision == "sent") {
      account.numbers += entry.numbers;
      account.bytes += entry.bytes;
      account.rounds += entry.kind == "encode" ? 1 : 0;
      account.epsilon += entry.epsilon;
      account.delta += entry.delta;
    }
    account.refusals += entry.decision == "refused" && entry.counted ? 1 : 0;
  };
  add(total_);
  remember(entry);
  if (!entry.plan.empty()) add(plans_[entry.plan]);
  if (entry.agreement.empty()) return;
  if (!entry.plan.empty()) plan_of_[entry.agreement] = entry.plan;
  Account& account = accounts_[entry.agreement];
  add(account);
  if (entry.kind == "approve") {
    account.standing = Account::Standing::approved;
    account.refusals = 0;
    if (const auto known = plan_of_.find(entry.agreement); known != plan_of_.end())
      plans_[known->second].refusals = 0;
  }
  if (entry.kind == "deny") account.standing = Account::Standing::denied;
  if (entry.kind == "pending") account.standing = Account::Standing::pending;
}

void Ledger::remember(const LedgerEntry& entry) {
  // A refusal is no answer to come back to.
  if (entry.run.empty() || !entry.sequence || entry.decision != "sent") return;
  Run& run = runs_[entry.run];
  order_.erase(run.stamp);
  run.stamp = ++stamp_;
  std::map<std::int64_t, std::int64_t> answered = std::move(run.last.answered);
  if (entry.kind == "encode" && entry.round) ++answered[*entry.round];
  run.last = {entry.kind,         entry.agreement, *entry.sequence,
              entry.round,        entry.request,   entry.sent,
              entry.data,         entry.received,  run.last.epsilon + entry.epsilon,
              std::move(answered)};
  order_.emplace(run.stamp, entry.run);
  if (runs_.size() <= remembered_runs) return;
  runs_.erase(order_.begin()->second);
  order_.erase(order_.begin());
}

const Account& Ledger::study(const std::string& agreement) const {
  static const Account none;
  const auto found = accounts_.find(agreement);
  return found == accounts_.end() ? none : found->second;
}

const Account& Ledger::plan(const std::string& plan) const {
  static const Account none;
  const auto found = plans_.find(plan);
  return found == plans_.end() ? none : found->second;
}

std::optional<LastReply> Ledger::run(const std::string& run) const {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return std::nullopt;
  return found->second.last;
}

}  // namespace starfold
