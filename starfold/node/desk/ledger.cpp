// What the desk writes down: decisions, refusals, what each study has had.
#include <fmt/format.h>

#include "starfold/base/utf8.h"
#include "starfold/node/desk/session.h"
#include "starfold/node/identity.h"
#include "starfold/plan/explain.h"
#include "starfold/secure/masked_states.h"

namespace starfold {

Answer Desk::refuse(const Request& request, const Decision& decision) {
  refused_ = decision;
  const bool hidden = decision.reason == Refusal::policy;
  LedgerEntry line = entry(request, request.kind.c_str());
  line.decision = decision.reason == Refusal::pending ? "pending" : "refused";
  line.rule = decision.rule.empty() ? std::string(sentence(decision.reason)) : decision.rule;
  line.detail = decision.detail;
  line.counted = hidden;
  Refusal reason = decision.reason;
  // Requests that cost their sender nothing must not fill the disk: beyond a rate they are counted, and told of in one line.
  if (!line.counted && !options_.dry && !refusal_lines_.take()) {
    ++unwritten_;
    return {encode_message(RefuseMessage{reason}), hidden, false};
  }
  try {
    record(line);
  } catch (const std::exception&) {
    reason = Refusal::no_resources;  // what cannot be written down is not told either
  }
  return {encode_message(RefuseMessage{reason}), hidden};
}

namespace {

// What others wrote, with marks that show where it ends, whatever is in it.
std::string marked(std::string_view text) {
  std::string words = "\"";
  for (const char c : printable(text))
    words += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return words + "\"";
}

// The levels of a column and what they become, in words.
std::string level_words(const std::string& column, const Categorical& declared) {
  std::string words = fmt::format("  {} has the levels", printable(column));
  const bool codes = declared.coding == Categorical::Coding::codes;
  for (std::size_t i = 0; i < declared.levels.size(); ++i) {
    words += fmt::format("{} {}", i == 0 ? "" : ",", marked(declared.levels[i]));
    if (codes) words += fmt::format(" = {}", i + 1);
  }
  if (!codes && declared.reference < declared.levels.size())
    words += fmt::format("; {} has no column", marked(declared.levels[declared.reference]));
  return words + "\n";
}

// All that the bindings say, in words: they are part of what the owner decides on. The longest parts come last. What cannot be read
// is refused when it is asked for again.
std::string bindings_words(const std::string& text) {
  Bindings bindings;
  try {
    bindings = parse_bindings(text);
  } catch (const RunError&) {
    return "\nWhich columns it takes cannot be read.\n";
  }
  Categoricals levels = bindings.factors;
  std::string words = "\nColumns:\n";
  for (const auto& [input, columns] : bindings.columns) {
    words += fmt::format("  {} takes", printable(input));
    const char* between = " ";
    for (const std::string& name : column_names(columns)) {
      words += between + printable(name);
      between = ", ";
    }
    words += "\n";
    for (const BoundColumn& column : columns) {
      if (column.categorical) levels.emplace(column.name, column.categorical);
    }
  }
  if (!bindings.formula.text.empty())
    words += fmt::format("  the formula {}\n", printable(bindings.formula.text));
  words += fmt::format("  missing values: {}\n", missing_word(bindings.missing));
  for (const std::string& name : bindings.formula.truths.value_or(std::set<std::string>()))
    words += fmt::format("  {} is true or false\n", printable(name));
  for (const Site& site : bindings.formula.sites)
    words += fmt::format("  site is {} at the source {} of the node {}\n", marked(site.name),
                         marked(site.source), marked(site.node));
  for (const auto& [column, declared] : levels) words += level_words(column, *declared);
  return words;
}

// What is promised about noise, in words.
std::string promise_words(const privacy::Terms& terms) {
  const privacy::Promise& promise = terms.promise;
  std::string words = fmt::format(
      "\nNoise is promised: epsilon = {:g}, delta = {:g}, for each {}, added at = \"{}\"",
      promise.epsilon, promise.delta, to_string(promise.unit), to_string(promise.at));
  words += fmt::format(", neighbours = \"{}\"", to_string(promise.neighbours));
  if (terms.shares > 0) words += fmt::format(", in {} shares", terms.shares);
  words += terms.predictable ? ", from a seed that the server knows.\n" : ".\n";
  for (const auto& [name, value] : terms.inputs) {
    words += fmt::format("  with {} =", printable(name));
    for (const double number : value.data) words += fmt::format(" {:g}", number);
    words += "\n";
  }
  return words;
}

}  // namespace

// Puts a study before the owner, with what it would send.
void Desk::note_pending(const Request& request, const Session& session, const std::string& bindings,
                        const std::string& reason) {
  if (!approvals_) return;
  const Plan& plan = *session.program->plan;
  // A long program must not take the room of what is said after it.
  constexpr std::size_t most_of_program = 12'000;
  std::string exposure = exposure_text(plan, session.program->compilation.sources);
  if (exposure.size() > most_of_program) exposure = exposure.substr(0, most_of_program) + " ...\n";
  if (session.terms) exposure += promise_words(*session.terms);
  if (session.group) {
    exposure += fmt::format(
        "\nMessages are masked; the server sees what those of at least {} of "
        "these clients add up to:\n",
        session.group->inputs());
    for (const secure::Member& member : session.group->members)
      exposure += fmt::format("  {}  {}\n", secure::key_text(member.key), printable(member.name));
  }
  exposure += bindings_words(bindings);
  approvals_->ask({request.agreement, request.study, request.peer, request.plan,
                   format_time(system_clock_now()), reason, exposure});
}

// What the owner has decided since the last request goes into the ledger first.
void Desk::take_up_decisions() {
  if (!approvals_) return;
  for (const OwnersDecision& decision : approvals_->decisions()) {
    LedgerEntry line;
    line.kind = decision.approved ? "approve" : "deny";
    line.agreement = decision.agreement;
    line.peer = "the owner";
    line.policy = policy_hash_;
    line.decision = decision.approved ? "approved" : "denied";
    record(line);
    approvals_->taken_up(decision);
  }
}

LedgerEntry Desk::entry(const Request& request, const char* kind) const {
  LedgerEntry line;
  line.kind = kind;
  line.study = request.study;
  line.agreement = request.agreement;
  line.peer = request.peer;
  line.run = request.run;
  line.sequence = request.sequence;
  line.round = request.round;
  line.plan = request.plan;
  line.policy = policy_hash_;
  line.data = request.data;
  line.received = request.received;
  line.request = request.hash;
  line.decision = "sent";
  return line;
}

void Desk::note_unwritten() {
  if (unwritten_ == 0) return;
  LedgerEntry note;
  note.kind = "note";
  note.detail = fmt::format("{} more refused requests have no lines of their own", unwritten_);
  ledger_->append(note);
  unwritten_ = 0;
}

void Desk::record(const LedgerEntry& entry) {
  if (!options_.dry) {
    note_unwritten();
    ledger_->append(entry);
    return;
  }
  if (entry.decision != "sent" || entry.kind != "encode") return;
  trial_.numbers += entry.numbers;
  trial_.epsilon += entry.epsilon;
  trial_.delta += entry.delta;
  ++trial_.rounds;
}

// What all studies together have had.
Account Desk::total() const {
  Account all = ledger_->total();
  all.epsilon += trial_.epsilon;
  all.delta += trial_.delta;
  return all;
}

// What the owner has said of this study, and what all studies with its plan have had: bindings that mean the same are
// easily made to look different.
Account Desk::account(const Session& session) const {
  Account account = ledger_->plan(session.plan);
  account.standing = ledger_->study(session.agreement).standing;
  account.numbers += trial_.numbers;
  account.rounds += trial_.rounds;
  // A trial is to show what an owner would approve.
  if (options_.dry && account.standing != Account::Standing::denied)
    account.standing = Account::Standing::approved;
  return account;
}

// Of a trial: this node's own key, or the one that the study says it has.
secure::Key Desk::trial_key() const {
  if (const std::optional<secure::Key> own = known_key(config_)) return *own;
  for (const secure::Member& member : options_.group->members) {
    if (member.name == config_.name) return member.key;
  }
  return {};
}

std::optional<LastReply> Desk::last_reply(const std::string& run) const {
  return options_.dry ? std::nullopt : ledger_->run(run);
}

}  // namespace starfold
