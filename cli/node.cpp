// starfold node ...: what a data owner does with a node's file and its ledger.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/node.h"
#include "cli/output.h"
#include "starfold/base/json.h"
#include "starfold/base/usage_error.h"
#include "starfold/base/utf8.h"
#include "starfold/node/approvals.h"
#include "starfold/node/describe.h"
#include "starfold/node/identity.h"
#include "starfold/node/ledger/ledger.h"

namespace starfold::cli {
namespace {

struct NodeArguments {
  std::string file;
  std::string id;
  std::string study;
  bool verify = false;
  bool json = false;
};

constexpr std::size_t shown_digits = 12;

// --- check

int check(const NodeArguments& arguments) {
  const NodeConfig config = read_node_config(arguments.file);
  say(arguments.json ? describe_policy_json(config) : describe_policy(config));
  return exit_done;
}

// --- key

int key(const NodeArguments& arguments) {
  const NodeConfig config = read_node_config(arguments.file);
  prepare_folder(config);
  const std::string text = secure::key_text(secure::signing_key(*load_identity(config)));
  say(arguments.json ? json_ordered_line({{"node", config.name}, {"key", text}}) : text + "\n");
  return exit_done;
}

// --- ledger

std::string shown(const LedgerLine& line) {
  const LedgerEntry& entry = line.entry;
  std::string text =
      fmt::format("{:>6}  {}  {:<8} {:<8}", line.seq, line.time, entry.kind, entry.decision);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {}{}", name, value);
  };
  add("node ", line.node);
  add("", entry.study);
  add("study ", entry.agreement.substr(0, shown_digits));
  add("from ", entry.peer);
  add("run ", entry.run.substr(0, shown_digits));
  if (entry.round) add("round ", std::to_string(*entry.round));
  if (entry.numbers > 0) add("", fmt::format("{} numbers {}", entry.numbers, entry.shapes));
  add("masked among ", entry.masked);
  if (entry.numbers_left) add("", fmt::format("{} left", *entry.numbers_left));
  if (entry.epsilon > 0) add("epsilon ", fmt::format("{:g}", entry.epsilon));
  add("rule ", entry.rule);
  add("(", entry.detail.empty() ? "" : entry.detail + ")");
  return printable(text) + "\n";
}

int list(const NodeConfig& config, bool json) {
  std::int64_t shown_lines = 0;
  std::int64_t damaged = 0;
  if (json) say("{\"entries\":[");
  read_ledger(config.ledger, [&](std::string_view text, const LedgerLine* line) {
    if (line == nullptr) {
      ++damaged;
    } else if (json) {
      say(fmt::format("{}{}", shown_lines > 0 ? "," : "", text));
    } else {
      say(shown(*line));
    }
    shown_lines += line != nullptr ? 1 : 0;
  });
  if (json) say(fmt::format("],\"damaged\":{}}}\n", damaged));
  if (!json && shown_lines == 0 && damaged == 0) say("nothing was asked yet\n");
  if (damaged > 0)
    complain(
        fmt::format("warning: {} line(s) cannot be read; `starfold node ledger --verify` says "
                    "more\n",
                    damaged));
  return exit_done;
}

int verify(const NodeConfig& config, bool json) {
  const Verdict verdict = verify_ledger(config.ledger, config.ledger_head());
  const int status = verdict.ok ? exit_done : exit_refused;
  if (json) {
    say(json_ordered_line({{"ok", verdict.ok},
                           {"lines", verdict.lines},
                           {"problems", verdict.problems},
                           {"notes", verdict.notes},
                           {"limits", ledger_limits()}}));
    return status;
  }
  for (const std::string& problem : verdict.problems) say(fmt::format("problem: {}\n", problem));
  for (const std::string& note : verdict.notes) say(fmt::format("note: {}\n", note));
  say(verdict.ok && verdict.lines == 0 ? std::string("there is no ledger yet\n")
      : verdict.ok ? fmt::format("{} lines, each following the one before\n", verdict.lines)
                   : std::string("this ledger is not as the node wrote it\n"));
  say(ledger_limits() + "\n");
  return status;
}

int ledger(const NodeArguments& arguments) {
  const NodeConfig config = read_node_config(arguments.file);
  return arguments.verify ? verify(config, arguments.json) : list(config, arguments.json);
}

// --- pending, approve, deny

std::string waiting_for(const Approvals& approvals, const std::string& agreement) {
  for (const OwnersDecision& decision : approvals.decisions()) {
    if (decision.agreement == agreement)
      return decision.approved ? "approved, the node takes it up with its next request"
                               : "denied, the node takes it up with its next request";
  }
  return "waits for you";
}

std::string further_in(const std::string& lines) {
  std::string text;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    text += line.empty() ? "\n" : "    " + line + "\n";
  return text;
}

int pending(const NodeArguments& arguments) {
  const NodeConfig config = read_node_config(arguments.file);
  const Approvals approvals(config.folder);
  nlohmann::json list = nlohmann::json::array();
  for (const PendingStudy& study : approvals.pending()) {
    const std::string state = waiting_for(approvals, study.agreement);
    list.push_back({{"id", study.agreement},
                    {"study", study.study},
                    {"peer", study.peer},
                    {"plan", study.plan},
                    {"time", study.time},
                    {"reason", study.reason},
                    {"exposure", study.exposure},
                    {"state", state}});
    if (arguments.json) continue;
    // What others wrote stays on its line, or further in: only what the node says itself begins one.
    say(printable_lines(fmt::format("{}  {}  {}{}\n  {}; {}\n  plan {}\n", study.agreement,
                                    printable(study.time), printable(study.study),
                                    study.peer.empty() ? "" : " from " + printable(study.peer),
                                    printable(study.reason), state, printable(study.plan))));
    say(printable_lines(further_in(study.exposure)) + "\n");
  }
  if (arguments.json)
    say(json_ordered_line({{"pending", std::move(list)}}));
  else if (list.empty())
    say("nothing waits\n");
  return exit_done;
}

// The study meant: by the whole of its hash. Who writes programs can make two whose hashes begin alike, so a beginning names none;
// those that it could have meant are told, each with all of its digits.
void require_whole_hash(const NodeConfig& config, const Approvals& approvals,
                        const std::string& id) {
  constexpr std::size_t all = 64;
  constexpr std::size_t fewest = 6;  // with which it is worth looking for those that begin so
  constexpr std::size_t most_told = 10;
  const bool digits = id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (digits && id.size() == all) return;
  std::string words = fmt::format(
      "a study is named by all {} digits of its hash, as `starfold node pending` shows them; not "
      "{}",
      all, printable(id));
  std::map<std::string, std::string> known;  // names of studies by hash
  if (digits && id.size() >= fewest && id.size() < all) {
    read_ledger(config.ledger, [&](std::string_view /*text*/, const LedgerLine* line) {
      if (line != nullptr && line->entry.agreement.starts_with(id))
        known[line->entry.agreement] = line->entry.study;
    });
    for (const PendingStudy& study : approvals.pending()) {
      if (study.agreement.starts_with(id)) known[study.agreement] = study.study;
    }
  }
  if (!known.empty()) words += "; so begin:";
  std::size_t told = 0;
  for (const auto& [hash, study] : known) {
    if (++told > most_told) break;
    words += fmt::format("\n  {}  {}", hash, printable(study));
  }
  if (told > most_told) words += "\n  ...";
  throw UsageError(words);
}

int decide(const NodeArguments& arguments, bool approved) {
  const NodeConfig config = read_node_config(arguments.file);
  prepare_folder(config);
  const Approvals approvals(config.folder);
  require_whole_hash(config, approvals, arguments.id);
  approvals.decide({arguments.id, approved, format_time(system_clock_now())});
  say(fmt::format("{} {}; the node takes it up with its next request\n",
                  approved ? "approved" : "denied", arguments.id));
  return exit_done;
}

}  // namespace

void add_node(CommandLine& line) {
  CommandGroup node = line.group("node", "what a data owner's node lets out, and what left it");
  auto arguments = std::make_shared<NodeArguments>();
  const auto add = [&](const char* name, const char* help, int (*run)(const NodeArguments&)) {
    return node.add(name, help, [arguments, run] { return run(*arguments); });
  };
  const auto file = [&](Command& command) {
    command.required("NODE", arguments->file, "the node's file");
  };

  Command serve = add("serve", "answer on the node's socket until it is told to end",
                      [](const NodeArguments& given) { return node_serve(given.file); });
  file(serve);

  Command trial =
      add("try", "the owner's dry run of a study: what would leave, what is refused and why",
          [](const NodeArguments& given) { return node_try(given.file, given.study); });
  file(trial);
  trial.required("STUDY", arguments->study, "the study");

  Command check_command =
      add("check", "say in words what would be let out and what refused", check);
  file(check_command);
  check_command.flag("--json", arguments->json, "print one JSON object");

  Command key_command = add(
      "key", "print the key that studies with secure aggregation pin; makes it if need be", key);
  file(key_command);
  key_command.flag("--json", arguments->json, "print one JSON object");

  Command ledger_command = add("ledger", "show what was asked and what left", ledger);
  file(ledger_command);
  ledger_command.flag("--verify", arguments->verify,
                      "look for gaps, changes and rollbacks instead");
  ledger_command.flag("--json", arguments->json, "print one JSON object");

  Command pending_command = add("pending", "list programs that wait for the owner", pending);
  file(pending_command);
  pending_command.flag("--json", arguments->json, "print one JSON object");

  Command approve = add("approve", "let a study run that waits or was stopped",
                        [](const NodeArguments& given) { return decide(given, true); });
  approve.required("ID", arguments->id, "its hash, as `node pending` shows it");
  file(approve);
  Command deny = add("deny", "keep a study from running",
                     [](const NodeArguments& given) { return decide(given, false); });
  deny.required("ID", arguments->id, "its hash, as `node pending` shows it");
  file(deny);
}

}  // namespace starfold::cli
