#include "starfold/node/desk/desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "starfold/base/hash.h"
#include "starfold/base/parallel.h"
#include "starfold/base/utf8.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/data/memory.h"
#include "starfold/node/chosen.h"
#include "starfold/node/description.h"
#include "starfold/node/desk/session.h"
#include "starfold/node/disk.h"
#include "starfold/node/identity.h"
#include "starfold/node/ledger/fingerprint.h"

namespace starfold {
namespace {

// Runs that are open at once. More are let go, the one that was longest without a request first: its server starts it
// again.
constexpr std::size_t most_sessions = 8;
constexpr std::size_t longest_program = 1 << 20;
constexpr std::size_t most_numbers_told =
    3;  // numbers of a message that the owner is told of at once

bool has_private_states(const ir::Program& program) {
  const auto at_clients = [](const ir::Carried& carried) { return carried.type.federated(); };
  return std::any_of(program.loops.begin(), program.loops.end(), [&](const ir::Loop& loop) {
    return std::any_of(loop.carried.begin(), loop.carried.end(), at_clients);
  });
}

std::string shapes_text(const std::vector<MergeState>& states) {
  std::string text;
  for (const MergeState& state : states) {
    for (const Tensor& part : state) {
      std::string shape;
      for (const std::int64_t extent : part.shape)
        shape += (shape.empty() ? "" : ",") + std::to_string(extent);
      text += fmt::format("{}[{}]", text.empty() ? "" : " ", shape);
    }
  }
  return text;
}

}  // namespace

Desk::Desk(NodeConfig config, DeskOptions options)
    : config_(std::move(config)),
      options_(options),
      policy_hash_(starfold::policy_hash(config_.policy)),
      memory_(plan_memory(options_.memory)),
      room_(std::make_shared<std::atomic<std::int64_t>>(memory_.records)) {
  if (options_.threads <= 0) options_.threads = static_cast<int>(hardware_threads());
  if (options_.dry) {
    ledger_.emplace(Ledger::look({config_.ledger, config_.ledger_head(), config_.name}));
    return;
  }
  prepare_folder(config_);
  identity_ = load_identity(config_);
  ledger_.emplace(Ledger::open({config_.ledger, config_.ledger_head(), config_.name}));
  replies_.emplace(config_.folder + "/replies");
  private_.emplace(config_.folder + "/private");
  approvals_.emplace(config_.folder);
}

Desk::~Desk() {
  try {
    if (!options_.dry && ledger_) note_unwritten();
  } catch (const std::exception&) {  // a full disk; the count is lost
  }
}

void Desk::reload(const Policy& policy) {
  config_.policy = policy;
  policy_hash_ = starfold::policy_hash(policy);
  sessions_
      .clear();  // runs that were started under another policy are started again under this one
}

Answer Desk::answer(std::string_view bytes, const std::string& peer) {
  refused_.reset();
  Request request{sha256_hex(bytes), peer, "request", {}, {}, {}, {}, {}, {}, {}, {}};
  const auto fail = [&](Refusal reason, std::string detail) {
    return refuse(request, {reason, {}, std::move(detail)});
  };
  try {
    Message message;
    try {
      message = decode_message(bytes);
    } catch (const RunError& error) {
      return fail(Refusal::unreadable, error.what());
    }
    take_up_decisions();
    return {dispatch(request, std::move(message)), false};
  } catch (const Refused& refused) {
    return refuse(request, refused.decision);
  } catch (const RunError& error) {
    return fail(Refusal::no_resources, error.what());
  } catch (const std::bad_alloc&) {
    return fail(Refusal::no_resources, "out of memory");
  } catch (const std::exception& error) {
    return fail(Refusal::internal_error, error.what());
  }
}

Bytes Desk::dispatch(Request& request, Message message) {
  if (std::holds_alternative<DescribeMessage>(message)) return describe();
  if (const auto* asked = std::get_if<StartMessage>(&message)) return start(request, *asked);
  if (auto* asked = std::get_if<EncodeMessage>(&message)) return encode(request, std::move(*asked));
  if (const auto* asked = std::get_if<SecureRequest>(&message)) return secure(request, *asked);
  refuse_request(Refusal::not_a_request, "this message is not for a client");
}

Bytes Desk::describe() const {
  std::optional<secure::Key> key;
  if (identity_) key = secure::signing_key(*identity_);
  return encode_message(DescriptionMessage{describe_node(config_, key)});
}

Protection Desk::protection(const Session& session) const {
  return {session.group.has_value() || options_.group.has_value(), session.terms};
}

// --- starting a run -------------------------------------------------------------------------------

Bytes Desk::start(Request& request, const StartMessage& message) {
  request.kind = "start";
  if (!is_run_id(message.run)) refuse_request(Refusal::another_run, "the run has no identity");
  request.run = message.run;
  request.study = message.study;
  if (Session* known = find(message.run); known != nullptr && known->greeting == request.hash) {
    request.agreement = known->agreement;
    return known->hello;
  }
  std::unique_ptr<Session> session = open(request, message);
  Bytes hello = session->hello;
  LedgerEntry line = entry(request, "start");
  if (session->group) line.masked = group_text(*session->group);
  record(line);
  keep(message.run, std::move(session));
  return hello;
}

std::unique_ptr<Desk::Session> Desk::open(Request& request, const StartMessage& message) {
  auto session = std::make_unique<Session>();
  session->greeting = request.hash;
  session->study = message.study;
  std::size_t length = message.program.text.size();
  for (const auto& [name, text] : message.program.modules) length += name.size() + text.size();
  if (length > longest_program) refuse_request(Refusal::program_errors, "the program is too long");
  session->program = cache_.get(message.program, message.planning);
  if (!session->program->plan) refuse_request(Refusal::program_errors, "the program has errors");
  session->plan = request.plan = session->program->hash;
  session->group = message.group;
  session->agreement = request.agreement =
      agreement(session->plan, message.bindings, options_.dry ? options_.group : message.group,
                message.privacy);
  try {
    if (!message.privacy.empty()) session->terms = privacy::decode_terms(message.privacy);
  } catch (const RunError& error) {
    refuse_request(Refusal::unreadable, error.what());
  }
  // A run is one program with one set of bindings, also when it is started again.
  const std::optional<LastReply> last = last_reply(message.run);
  const Session* known = find(message.run);
  if ((last && last->agreement != session->agreement) ||
      (known != nullptr && known->agreement != session->agreement))
    refuse_request(Refusal::another_program, "the run was started with another program");
  if (session->group) {
    if (!identity_) refuse_request(Refusal::broken_protocol, "a trial has no key to mask with");
    require(forbids_group(config_.policy, *session->group, secure::signing_key(*identity_)));
  }
  if (options_.group) require(forbids_group(config_.policy, *options_.group, trial_key()));
  if (const Forbidden forbidden =
          forbids_study(config_.policy, account(*session), session->plan, protection(*session))) {
    if (forbidden->reason == Refusal::pending || forbidden->reason == Refusal::max_refusals)
      note_pending(request, *session, message.bindings, forbidden->detail);
    throw Refused{*forbidden};
  }
  if (session->terms) {
    require(forbids_noise(*session->terms, options_.dry ? options_.group : session->group));
    if (last) session->epsilon = last->epsilon;
    if (last) session->answered = last->answered;
    const privacy::Promise& promise = session->terms->promise;
    require(forbids_spending(config_.policy, total(), promise.epsilon - session->epsilon,
                             last ? 0 : promise.delta));
  }
  session->source = config_.find(message.source);
  if (session->source == nullptr)
    throw Refused{{Refusal::no_such_source, std::string(rule_of(Refusal::no_such_source)),
                   fmt::format("there is no source {}", printable(message.source))}};
  Bindings bindings;
  try {
    bindings = parse_bindings(message.bindings);
  } catch (const RunError& error) {
    refuse_request(Refusal::unreadable, error.what());
  }
  if (session->terms)
    require(forbids_neighbours(session->terms->promise, *session->source, bindings.missing));
  require(forbids_program(config_.policy, *session->source, *session->program->plan, bindings));
  load(*session, bindings);
  request.data = session->data;
  if (last && last->data != session->data)
    throw Refused{{Refusal::policy, "records", "the data are not those that the run began with"}};
  Message hello = session->node->answer(message);
  if (const auto* refusal = std::get_if<RefuseMessage>(&hello))
    refuse_request(refusal->reason, session->node->trouble()->what());
  for (const Round* round : rounds_of(*session->program->plan))
    require(forbids_round(config_.policy, account(*session),
                          round_numbers(*session->program->plan, *round, session->node->sizes())));
  require(forbids_memory(*session->program->plan, session->node->sizes(), options_.threads,
                         memory_.values));
  session->records = record_counts(session->program->plan->program, session->node->client());
  require(forbids_records(config_.policy, *session->program->plan, session->node->sizes(),
                          session->records));
  session->support = std::make_unique<Support>(session->program->plan, session->node->sizes(),
                                               session->node->engine());
  session->node->release_arrays();
  if (last) restore_own(message.run, last->sequence, *session);
  if (last) go_on(*session, *last);
  session->hello = encode_message(hello);
  return session;
}

// Reads the records that the bindings name. What is wrong with columns shows in the schema; what is wrong with records is for the
// owner alone.
void Desk::load(Session& session, const Bindings& bindings) {
  const ir::Program& program = session.program->plan->program;
  make_room();
  const std::int64_t room = std::max<std::int64_t>(*room_, 0);
  Tables tables({memory_.reader, room});
  std::optional<DataSource> source;
  ColumnPlan plan;
  Categoricals categoricals = bindings.factors;
  try {
    source = open_node_source(config_, *session.source, tables);
    session.data = data_hash(session.source->location);
    ColumnBindings choices;
    for (const auto& [input, columns] : bindings.columns) {
      for (const BoundColumn& column : columns) {
        choices[input].columns.push_back(column.name);
        if (column.categorical) categoricals[column.name] = column.categorical;
      }
    }
    plan = plan_columns(program, {*source}, choices, categoricals, bindings.formula);
  } catch (const RunError& error) {
    refuse_request(Refusal::data_misfit, error.what());
  } catch (const formula::FormulaError& error) {
    refuse_request(Refusal::data_misfit, error.what());
  }
  require(forbids_columns(*session.source, plan));
  try {
    const LoadOptions options{bindings.missing, options_.threads};
    if (!has_own_noise(session.terms))
      require(forbids_choice(config_.policy, *source, plan, categoricals, options, tables.room()));
    Client client = load_client(program, *source, plan, options, tables.room()).client;
    EngineOptions engine;
    engine.threads = options_.threads;
    engine.room = room_;
    session.room = TakenRoom(room_, room - tables.room());
    session.node = std::make_unique<Node>(std::move(client), cache_, engine, identity_);
  } catch (const formula::FormulaError& error) {  // with what counts its conditions it is too long
    refuse_request(Refusal::data_misfit, error.what());
  } catch (const RunError& error) {
    throw Refused{{Refusal::policy, "records", error.what()}};
  }
}

// --- a round --------------------------------------------------------------------------------------

// The session of a run that was started; the request learns what it is about.
Desk::Session& Desk::session_of(Request& request, const std::string& run) {
  if (!is_run_id(run)) refuse_request(Refusal::another_run, "the run has no identity");
  request.run = run;
  Session* session = find(run);
  if (session == nullptr) refuse_request(Refusal::not_started, "no program was started");
  request.study = session->study;
  request.agreement = session->agreement;
  request.plan = session->plan;
  request.data = session->data;
  return *session;
}

Bytes Desk::encode(Request& request, EncodeMessage message) {
  request.kind = "encode";
  Session* const session = &session_of(request, message.run);
  request.round = message.round;
  request.sequence = static_cast<std::int64_t>(message.sequence);
  if (std::optional<Bytes> reply = repeated(request, *session, message)) return *std::move(reply);

  const Plan& plan = *session->program->plan;
  const Account had = account(*session);
  require(forbids_study(config_.policy, had, session->plan, protection(*session)));
  std::int64_t numbers = 0;
  if (message.round < static_cast<std::uint32_t>(plan.rounds)) {
    numbers = round_numbers(plan, session->node->round(message.round), session->node->sizes());
    require(forbids_round(config_.policy, had, numbers));
    require(forbids_total(config_.policy, had, numbers, session->records));
  }
  LedgerEntry spending;
  charge(*session, message.round, spending);
  request.received = values_hash(message.values);
  const std::vector<Tensor> received = message.values;
  Message answer = session->node->answer(std::move(message));
  if (const auto* refusal = std::get_if<RefuseMessage>(&answer)) pass_on(*refusal, *session->node);
  const StateMessage& state = std::get<StateMessage>(answer);
  try {
    if (!has_own_noise(session->terms))
      check_support(*session, session->node->round(state.round), received, state);
  } catch (const Refused&) {
    sessions_.erase(request.run);  // the round has not been: it is not behind the run
    throw;
  }

  Bytes bytes = encode_message(answer);
  LedgerEntry line = entry(request, "encode");
  line.numbers = numbers;
  line.bytes = static_cast<std::int64_t>(bytes.size());
  line.shapes = shapes_text(state.states);
  line.sent = sha256_hex(bytes);
  line.numbers_left = config_.policy.max_numbers - had.numbers - numbers;
  line.rounds_left = config_.policy.max_rounds - had.rounds - 1;
  add_spending(line, spending);
  keep_own(request, *session, session->node->round(state.round));
  if (replies_) replies_->keep(request.run, *request.sequence, bytes);
  record(line);
  session->epsilon += line.epsilon;
  ++session->answered[*request.round];
  return bytes;
}

// What a round of a private run costs the owner's budget; it is refused where that does not allow it.
void Desk::charge(const Session& session, std::uint32_t round, LedgerEntry& line) {
  if (!session.terms) return;
  const privacy::PrivatePlan* plan = nullptr;
  try {
    plan = session.node->private_plan();
  } catch (const privacy::NotPrivate& error) {
    refuse_request(Refusal::cannot_encode, error.what());
  } catch (const RunError& error) {  // too many records
    throw Refused{{Refusal::policy, "records", error.what()}};
  }
  if (plan == nullptr || round >= plan->rounds().size()) return;
  const auto had_round = session.answered.find(round);
  const std::int64_t most = plan->rounds()[round].runs;
  // Noise is made for so many releases: one more would be paid by nobody.
  if (had_round != session.answered.end() ? had_round->second >= most : most < 1)
    refuse_request(Refusal::out_of_order,
                   fmt::format("round {} of this private run is accounted for {} times, and was "
                               "answered as often",
                               round + 1, most));
  line.epsilon = std::max(0.0, plan->spent_with(session.epsilon, round) - session.epsilon);
  // What no record can change costs neither.
  if (session.epsilon == 0 && plan->rounds()[round].cost > 0) line.delta = plan->promise().delta;
  const Account had = total();
  require(forbids_spending(config_.policy, had, line.epsilon, line.delta));
  if (!config_.policy.budget) return;
  line.epsilon_left = std::max(0.0, config_.policy.budget->epsilon - had.epsilon - line.epsilon);
  line.delta_left = std::max(0.0, config_.policy.budget->delta - had.delta - line.delta);
}

// What a round has made for this client alone goes to its own folder before the reply that belongs to it: private states,
// from which the run goes on, and results that it keeps.
void Desk::keep_own(const Request& request, const Session& session, const Round& round) {
  const Engine& engine = session.node->engine();
  if (private_ && has_private_states(session.program->plan->program)) {
    ByteWriter states;
    engine.save_private(states);
    const Bytes bytes = states.take();
    ByteWriter file;
    file.number(*request.sequence);
    file.text(sha256_hex(bytes));
    file.text(bytes);
    private_->keep(request.run, *request.sequence, file.take());
  }
  if (options_.dry) return;
  const bool keeps = std::any_of(round.stores.begin(), round.stores.end(), [](const Store& store) {
    return store.what == Store::What::keep;
  });
  if (!keeps) return;
  const std::string folder = config_.folder + "/kept/" + request.run;
  make_private_folder(folder);
  for (const auto& [name, value] : engine.kept())
    write_lasting(fmt::format("{}/{}.npy", folder, name), format_npy(value));
}

// The private states as they were when a request was answered.
void Desk::restore_own(const std::string& run, std::int64_t sequence, Session& session) const {
  if (!has_private_states(session.program->plan->program)) return;
  try {
    const std::optional<std::string> file = private_->read(run, sequence);
    if (!file) ByteReader::fail();
    ByteReader in(*file);
    const auto of = in.number<std::int64_t>();
    const std::string hash = in.text();
    const std::string bytes = in.text();
    in.end();
    if (of != sequence || hash != sha256_hex(bytes)) ByteReader::fail();
    ByteReader states(bytes);
    session.node->restore_private(states);
    states.end();
  } catch (const RunError&) {
    refuse_request(Refusal::internal_error, "the private states of this run cannot be read again");
  }
}

// The reply to a request that was answered before: the same bytes, at no cost.
std::optional<Bytes> Desk::repeated(const Request& request, const Session& session,
                                    const EncodeMessage& message) {
  const std::optional<LastReply> last = last_reply(request.run);
  if (!last || last->sequence != *request.sequence || last->request != request.hash)
    return std::nullopt;
  if (std::optional<Bytes> kept = replies_->find(request.run, last->sequence, last->sent))
    return kept;
  if (has_own_noise(session.terms))
    refuse_request(Refusal::internal_error,
                   "an answer with noise was given before, and the file that kept it is gone");
  // The file is gone, but the same records give the same bits.
  Bytes again = encode_message(session.node->answer(message));
  if (sha256_hex(again) == last->sent) return again;
  refuse_request(Refusal::internal_error, "an answer that was given before cannot be given again");
}

void Desk::check_support(Session& session, const Round& round, const std::vector<Tensor>& received,
                         const StateMessage& state) const {
  std::map<ir::NodeId, Tensor> values;
  for (std::size_t i = 0; i < round.receives.size(); ++i)
    values.emplace(round.receives[i], received[i]);
  const double least = config_.policy.min_support;
  std::vector<ThinCell> thin;
  try {
    thin = session.support->thin(round, values, state.states, least, most_numbers_told,
                                 session.terms ? Support::Scale::grid : Support::Scale::plain);
  } catch (const RunError& error) {  // what cannot be held to its support does not leave
    throw Refused{{Refusal::policy, "min_support", error.what()}};
  }
  if (thin.empty()) return;
  std::string detail;
  for (const ThinCell& cell : thin) {
    detail += (detail.empty() ? "" : "; ") +
              starfold::describe(*session.program->plan, round, session.node->sizes(),
                                 session.program->compilation.sources, cell, least);
  }
  throw Refused{{Refusal::policy, "min_support", std::move(detail)}};
}

Desk::Session* Desk::find(const std::string& run) {
  const auto found = sessions_.find(run);
  if (found == sessions_.end()) return nullptr;
  found->second->used = ++clock_;
  return found->second.get();
}

void Desk::keep(const std::string& run, std::unique_ptr<Session> session) {
  session->used = ++clock_;
  sessions_[run] = std::move(session);
  while (sessions_.size() > most_sessions) let_one_go();
}

// Nobody says that a run is over: those that were longest without a request make room for the next.
void Desk::make_room() {
  while (!sessions_.empty() && *room_ < memory_.records / 2) let_one_go();
}

void Desk::let_one_go() {
  sessions_.erase(std::min_element(
      sessions_.begin(), sessions_.end(),
      [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
}

}  // namespace starfold
