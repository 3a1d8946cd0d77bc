#include <fmt/format.h>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/node/ledger/files.h"
#include "starfold/node/ledger/ledger.h"

namespace starfold {
namespace {

constexpr std::size_t most_told = 100;

void tell(std::vector<std::string>& list, std::string text) {
  if (list.size() < most_told) list.push_back(std::move(text));
  if (list.size() == most_told) list.emplace_back("... and more");
}

// What the head says about the lines it was compared with.
void compare_head(const HeadFile& head, bool seen, std::string_view rest, Verdict& verdict) {
  if (!head.exists) {
    // A crash may come between the first line and its head.
    if (verdict.lines > 1)
      tell(verdict.problems,
           "the head is missing: it would show a change of the last line, or a rollback");
    return;
  }
  if (!head.head) {
    tell(verdict.problems,
         "the head is damaged: it would show a change of the last line, or a rollback");
    return;
  }
  const std::int64_t behind = verdict.lines - 1 - head.head->seq;
  if (behind < 0) {
    tell(verdict.problems,
         rest.empty() || behind < -1
             ? fmt::format("the ledger was rolled back: it ends with seq {}, and its head with {}",
                           verdict.lines - 1, head.head->seq)
             : fmt::format("the line with seq {} was whole once and is cut now", head.head->seq));
  } else if (!seen) {
    tell(verdict.problems,
         fmt::format("the line with seq {} is not the one that the head names", head.head->seq));
  } else if (behind > 0) {
    tell(verdict.notes, fmt::format("the head is {} line(s) behind, as after a crash or while a "
                                    "node writes; those are held by the chain alone",
                                    behind));
  }
}

}  // namespace

Verdict verify_ledger(const std::string& path, const std::string& head_path) {
  Verdict verdict;
  const HeadFile head = read_head(head_path);  // first: a node that writes is ahead of it
  const Descriptor file = open_regular(path);
  LineReader lines(file.number(), path);
  LedgerChain chain;
  bool seen = false;
  std::string time;
  while (file && lines.next()) {
    LedgerLine line;
    const std::string problem = chain.add(lines.line(), line);
    if (!problem.empty()) tell(verdict.problems, problem);
    if (!line.time.empty() && line.time < time)
      tell(verdict.notes, fmt::format("the clock went back at the line with seq {}, from {} to {}",
                                      line.seq, printable(time), printable(line.time)));
    if (!line.time.empty()) time = line.time;
    if (line.entry.kind == "note")
      tell(verdict.notes,
           fmt::format("the line with seq {} says: {}", line.seq, printable(line.entry.detail)));
    seen = seen || (head.head && line.seq == head.head->seq && chain.hash() == head.head->hash);
  }
  verdict.lines = chain.next();
  const std::string_view rest = file ? lines.rest() : std::string_view();
  if (rest.size() > longest_ledger_line) {
    tell(verdict.problems, "after the last line follows something that is no line");
  } else if (!rest.empty()) {
    tell(verdict.notes,
         fmt::format("the last line is torn after {} bytes, as a crash leaves it; the "
                     "node cuts it off when it starts",
                     rest.size()));
  }
  compare_head(head, seen, rest, verdict);
  verdict.ok = verdict.problems.empty();
  return verdict;
}

std::string ledger_limits() {
  return "What this cannot show: a ledger and its head that were both put back to an older state, "
         "or written anew as a whole, by someone who may write to both. Copies of the head (one "
         "line), kept elsewhere, would show that.";
}

void read_ledger(const std::string& path,
                 const std::function<void(std::string_view text, const LedgerLine*)>& each) {
  const Descriptor file = open_regular(path);
  if (!file) return;
  LineReader lines(file.number(), path);
  while (lines.next()) {
    const std::optional<LedgerLine> line = parse_line(lines.line());
    each(lines.line(), line ? &*line : nullptr);
  }
}

}  // namespace starfold
