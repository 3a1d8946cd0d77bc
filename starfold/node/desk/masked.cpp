// Rounds whose states are masked: the desk's part of secure aggregation.
#include <fmt/format.h>

#include "starfold/node/desk/session.h"
#include "starfold/node/identity.h"
#include "starfold/secure/masked_states.h"

namespace starfold {
namespace {

// Masked numbers as the owner sees them in the ledger: how many, of how many words.
std::string shapes_text(const secure::Layout& layout) {
  std::string text;
  for (const secure::Piece& piece : layout)
    text += fmt::format("{}{} x {} words", text.empty() ? "" : ", ", piece.count, piece.width);
  return text;
}

// In the order of secure::Request.
constexpr const char* step_names[] = {"keys", "share", "encode", "sign", "unmask"};

// Where states are masked, each round has two replies to be kept.
std::int64_t masked_slot(std::int64_t sequence) { return 2 * sequence; }
std::int64_t unmasked_slot(std::int64_t sequence) { return 2 * sequence + 1; }

}  // namespace

Bytes Desk::secure(Request& request, const SecureRequest& message) {
  request.kind = step_names[message.body.index()];
  Session* const session = &session_of(request, message.run);
  if (message.agreement != session->agreement)
    refuse_request(Refusal::another_program, "a request for another program");
  if (!session->group)
    refuse_request(Refusal::broken_protocol, "the states of this run are not masked");
  if (const auto* asked = std::get_if<secure::MaskRequest>(&message.body))
    return mask(request, *session, *asked);
  if (std::holds_alternative<secure::UnmaskRequest>(message.body))
    return unmask(request, *session, message);
  const Message answer = session->node->answer(message);
  if (const auto* refusal = std::get_if<RefuseMessage>(&answer)) pass_on(*refusal, *session->node);
  Bytes bytes = encode_message(answer);
  if (session->last_step != request.hash) {
    LedgerEntry line = entry(request, request.kind.c_str());
    line.masked = group_text(*session->group);
    line.bytes = static_cast<std::int64_t>(bytes.size());
    line.sent = sha256_hex(bytes);
    record(line);
  }
  session->last_step = request.hash;
  return bytes;
}

// What lies behind a run that began before this node was started.
void Desk::go_on(Session& session, const LastReply& last) const {
  const auto sequence = static_cast<std::uint64_t>(last.sequence);
  if (!session.group) {
    session.node->go_on(sequence + 1, static_cast<std::uint32_t>(*last.round));
    return;
  }
  session.node->masked_before(last.kind == "unmask" ? sequence + 1 : sequence);
  session.behind = last;
}

Bytes Desk::mask(Request& request, Session& session, const secure::MaskRequest& asked) {
  request.round = asked.round;
  request.sequence = static_cast<std::int64_t>(asked.sequence);
  request.received = values_hash(asked.values);
  if (std::optional<Bytes> reply = kept(request, masked_slot(*request.sequence)))
    return *std::move(reply);
  // A state that was masked and never unmasked may be masked again with other keys, if it is the same; it costs nothing.
  const std::optional<LastReply> last = last_reply(request.run);
  const bool again = last && last->sequence == *request.sequence && last->kind != "unmask";
  if (again && (last->round != request.round || last->received != request.received))
    refuse_request(Refusal::out_of_order, "the round was masked for other shared values before");
  if (session.behind) {
    if (again)
      session.node->go_on(asked.sequence);
    else
      session.node->go_on(static_cast<std::uint64_t>(session.behind->sequence) + 1,
                          static_cast<std::uint32_t>(*session.behind->round));
    session.behind.reset();
  }
  const Plan& plan = *session.program->plan;
  const Account had = account(session);
  require(forbids_study(config_.policy, had, session.plan, protection(session)));
  std::int64_t numbers = 0;
  if (!again && asked.round < static_cast<std::uint32_t>(plan.rounds)) {
    numbers = round_numbers(plan, session.node->round(asked.round), session.node->sizes());
    require(forbids_round(config_.policy, had, numbers));
    require(forbids_total(config_.policy, had, numbers, session.records));
  }
  LedgerEntry spending;
  if (!again) charge(session, asked.round, spending);
  const Message state = session.node->unmasked_state(asked);
  if (const auto* refusal = std::get_if<RefuseMessage>(&state)) pass_on(*refusal, *session.node);
  const Round& round = session.node->round(asked.round);
  try {
    if (!has_own_noise(session.terms))
      check_support(session, round, asked.values, std::get<StateMessage>(state));
  } catch (const Refused&) {
    sessions_.erase(request.run);  // the round has not been: it is not behind the run
    throw;
  }
  const Message answer = session.node->mask(asked, std::get<StateMessage>(state));
  if (const auto* refusal = std::get_if<RefuseMessage>(&answer)) pass_on(*refusal, *session.node);
  LedgerEntry line = entry(request, again ? "again" : "encode");
  line.numbers = numbers;
  line.shapes = shapes_text(
      secure::masked_layout(plan, round, session.node->sizes(),
                            session.terms ? secure::Numbers::whole : secure::Numbers::any));
  line.masked = group_text(*session.group);
  line.numbers_left = config_.policy.max_numbers - had.numbers - numbers;
  line.rounds_left = config_.policy.max_rounds - had.rounds - (again ? 0 : 1);
  add_spending(line, spending);
  session.epsilon += line.epsilon;
  if (!again) ++session.answered[*request.round];
  keep_own(request, session, session.node->round(asked.round));
  return sent(request, std::move(line), answer, masked_slot(*request.sequence));
}

// Gives away the shares that unmask a sum. That it did is on the disk before they leave, so that nothing is masked for this round again.
Bytes Desk::unmask(Request& request, Session& session, const SecureRequest& message) {
  const auto& asked = std::get<secure::UnmaskRequest>(message.body);
  request.sequence = static_cast<std::int64_t>(asked.sequence);
  if (std::optional<Bytes> reply = kept(request, unmasked_slot(*request.sequence)))
    return *std::move(reply);
  const std::optional<LastReply> last = last_reply(request.run);
  if (!last || last->sequence != *request.sequence)
    refuse_request(Refusal::keys_lost, "this round was not masked");
  request.round = last->round;
  request.received = last->received;
  const Message answer = session.node->answer(message);
  if (const auto* refusal = std::get_if<RefuseMessage>(&answer)) pass_on(*refusal, *session.node);
  LedgerEntry line = entry(request, "unmask");
  line.masked = fmt::format("{} of {}", asked.present.size(), group_text(*session.group));
  return sent(request, std::move(line), answer, unmasked_slot(*request.sequence));
}

// Keeps a reply and writes it down; then it may leave.
Bytes Desk::sent(Request& request, LedgerEntry line, const Message& answer, std::int64_t slot) {
  Bytes bytes = encode_message(answer);
  line.bytes = static_cast<std::int64_t>(bytes.size());
  line.sent = sha256_hex(bytes);
  if (replies_) replies_->keep(request.run, slot, bytes);
  record(line);
  return bytes;
}

// The bytes of a reply that was given before, where they are still there.
std::optional<Bytes> Desk::kept(const Request& request, std::int64_t slot) const {
  const std::optional<LastReply> last = last_reply(request.run);
  if (!last || last->sequence != *request.sequence || last->request != request.hash)
    return std::nullopt;
  return replies_->find(request.run, slot, last->sent);
}

}  // namespace starfold
