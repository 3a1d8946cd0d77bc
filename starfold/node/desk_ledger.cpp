// What the desk writes down: decisions, refusals, what each study has had.
#include <fmt/format.h>

#include "starfold/base/utf8.h"
#include "starfold/node/desk_session.h"
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
  if (!line.counted && ledger_ && !refusal_lines_.take()) {
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

// Puts a study before the owner, with what it would send.
void Desk::note_pending(const Request& request, const Session& session, const std::string& reason) {
  if (!approvals_) return;
  const Plan& plan = *session.program->plan;
  std::string exposure = exposure_text(plan, session.program->compilation.sources);
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

void Desk::record(const LedgerEntry& entry) {
  if (ledger_) {
    if (unwritten_ > 0) {
      LedgerEntry note;
      note.kind = "note";
      note.detail = fmt::format("{} more refused requests have no lines of their own", unwritten_);
      ledger_->append(note);
      unwritten_ = 0;
    }
    ledger_->append(entry);
    return;
  }
  Account& account = trial_accounts_[entry.agreement];
  if (entry.decision != "sent" || entry.kind != "encode") return;
  account.numbers += entry.numbers;
  account.epsilon += entry.epsilon;
  account.delta += entry.delta;
  ++account.rounds;
}

// What all studies together have had.
Account Desk::total() const {
  if (ledger_) return ledger_->total();
  Account all;
  for (const auto& [agreement, account] : trial_accounts_) {
    all.epsilon += account.epsilon;
    all.delta += account.delta;
  }
  return all;
}

// What the owner has said of this study, and what all studies with its plan have had: bindings that mean the same are
// easily made to look different.
Account Desk::account(const Session& session) const {
  if (!ledger_) {
    const auto found = trial_accounts_.find(session.agreement);
    return found == trial_accounts_.end() ? Account() : found->second;
  }
  Account account = ledger_->plan(session.plan);
  account.standing = ledger_->study(session.agreement).standing;
  return account;
}

std::optional<LastReply> Desk::last_reply(const std::string& run) const {
  return ledger_ ? ledger_->run(run) : std::nullopt;
}

}  // namespace starfold
