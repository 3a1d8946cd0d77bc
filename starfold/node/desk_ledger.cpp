// What the desk writes down: decisions, refusals, what each study has had.
#include <fmt/format.h>

#include "starfold/base/utf8.h"
#include "starfold/node/desk_session.h"
#include "starfold/node/identity.h"
#include "starfold/plan/explain.h"
#include "starfold/privacy/masked_states.h"

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

// Which columns become which input, in words; what cannot be read is refused when it is asked for again.
std::string bindings_words(const std::string& text) {
  Bindings bindings;
  try {
    bindings = parse_bindings(text);
  } catch (const RunError&) {
    return "\nWhich columns it takes cannot be read.\n";
  }
  std::string words = "\nColumns:\n";
  for (const auto& [input, columns] : bindings.columns) {
    words += fmt::format("  {} takes", printable(input));
    const char* between = " ";
    for (const std::string& name : column_names(columns)) {
      words += between + printable(name);
      between = ", ";
    }
    words += "\n";
  }
  if (!bindings.formula.text.empty())
    words += fmt::format("  the formula {}\n", printable(bindings.formula.text));
  return words + fmt::format("  missing values: {}\n", missing_word(bindings.missing));
}

}  // namespace

// Puts a study before the owner, with what it would send.
void Desk::note_pending(const Request& request, const Session& session, const std::string& bindings,
                        const std::string& reason) {
  if (!approvals_) return;
  const Plan& plan = *session.program->plan;
  std::string exposure = exposure_text(plan, session.program->compilation.sources);
  exposure += bindings_words(bindings);
  if (session.terms)
    exposure += fmt::format("\nNoise is promised: epsilon = {:g}, delta = {:g}.\n",
                            session.terms->promise.epsilon, session.terms->promise.delta);
  if (session.group) {
    exposure += fmt::format(
        "\nMessages are masked; the server sees what those of at least {} of "
        "these clients add up to:\n",
        session.group->inputs());
    for (const secure::Member& member : session.group->members)
      exposure += fmt::format("  {}  {}\n", secure::key_text(member.key), printable(member.name));
  }
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
