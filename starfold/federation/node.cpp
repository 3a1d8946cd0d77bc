#include "starfold/federation/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/secure/masked_states.h"
#include "starfold/tensor/bits.h"

namespace starfold {
namespace {

// A refusal on its way out of the functions below: the reason for the server, the rest for the owner.
struct Refused {
  Refusal reason;
  RunError detail;
};

// The work of `step`; what it cannot do becomes a refusal for this reason, with a detail that names
// the client.
template <typename Step>
auto or_refuse(Refusal reason, const std::string& client, const Step& step) {
  try {
    return step();
  } catch (const RunError& error) {
    const std::string name = client.starts_with("client ") ? client : "client " + client;
    const std::string what = error.what();
    const std::string words = what.starts_with(name) ? what : name + ": " + what;
    throw Refused{reason, error.where() ? RunError(words, *error.where()) : RunError(words)};
  }
}

}  // namespace

std::shared_ptr<const CompiledProgram> ProgramCache::get(const ProgramText& text,
                                                         const Planning& planning) {
  if (!last_ || !(last_->text == text) || last_->planning != planning) {
    ProgramOptions options;
    options.signature = &signature_;
    options.planning = planning;
    last_ = compile_program(text, options);
  }
  return last_;
}

std::shared_ptr<const Encoders> ProgramCache::encoders(
    const std::shared_ptr<const CompiledProgram>& program, const SizeValues& sizes) {
  if (!encoders_ || encoders_plan_ != program->plan || encoders_sizes_ != sizes) {
    encoders_ = std::make_shared<const Encoders>(program->plan, sizes);
    encoders_plan_ = program->plan;
    encoders_sizes_ = sizes;
  }
  return encoders_;
}

ProgramCache::Private ProgramCache::make_private(
    const std::shared_ptr<const CompiledProgram>& program, const SizeValues& sizes,
    const Bytes& terms) {
  const std::lock_guard<std::mutex> lock(*mutex_);  // nodes of one process ask at the same time
  if (!private_.plan || private_of_ != program->plan || private_sizes_ != sizes ||
      private_terms_ != terms) {
    private_ = {};
    auto plan = std::make_shared<const privacy::PrivatePlan>(program->plan, sizes,
                                                             privacy::decode_terms(terms));
    private_ = {plan, std::make_shared<const Encoders>(plan->encoders(), sizes)};
    private_of_ = program->plan;
    private_sizes_ = sizes;
    private_terms_ = terms;
  }
  return private_;
}

Node::Node(Client client, ProgramCache& cache, EngineOptions options, secure::Identity identity,
           NoiseOptions noise)
    : client_(std::move(client)),
      cache_(cache),
      options_(options),
      noise_(noise),
      identity_(std::move(identity)) {}

Bytes Node::handle(std::string_view request) {
  trouble_.reset();
  Message message;
  try {
    message = decode_message(request);
  } catch (const RunError& error) {
    trouble_ = RunError(fmt::format("client {}: {}", client_.name, error.what()));
    return encode_message(RefuseMessage{Refusal::unreadable});
  }
  return encode_message(answer(std::move(message)));
}

Message Node::answer(Message request) {
  return guarded([&] { return dispatch(request); });
}

Message Node::unmasked_state(const secure::MaskRequest& request) {
  return guarded([&] {
    if (!secure_) refuse(Refusal::not_started, "no program was started whose states are masked");
    secure_->check(request);
    EncodeMessage asked{agreement_, request.sequence, request.round, request.values, run_};
    return encode(asked);
  });
}

Message Node::mask(const secure::MaskRequest& request, const StateMessage& state) {
  return guarded([&]() -> Message {
    const Round& round = *rounds_.at(request.round);
    const auto numbers = terms_.empty() ? secure::Numbers::any : secure::Numbers::whole;
    secure::Words words = or_refuse(Refusal::cannot_encode, client_.name, [&] {
      return secure::to_words(*program_->plan, round, state.states, numbers);
    });
    return reply(secure_->mask(
        request, secure::masked_layout(*program_->plan, round, sizes_, numbers), std::move(words)));
  });
}

// The answer that `step` makes, or the refusal that it ends with.
template <typename Step>
Message Node::guarded(const Step& step) {
  trouble_.reset();
  const auto refuse = [&](Refusal reason, RunError detail) {
    trouble_ = std::move(detail);
    return RefuseMessage{reason};
  };
  // What an unexpected failure says may hold anything, so nobody is told its words.
  const auto own = [&](Refusal reason) {
    return RunError(fmt::format("client {}: {}", client_.name, sentence(reason)));
  };
  try {
    return step();
  } catch (const Refused& refused) {
    return refuse(refused.reason, refused.detail);
  } catch (const secure::KeysLost& lost) {
    return refuse(Refusal::keys_lost,
                  RunError(fmt::format("client {}: {}", client_.name, lost.what())));
  } catch (const secure::ProtocolError& broken) {
    return refuse(Refusal::broken_protocol,
                  RunError(fmt::format("client {}: {}", client_.name, broken.what())));
  } catch (const std::bad_alloc&) {
    return refuse(Refusal::no_resources, own(Refusal::no_resources));
  } catch (const std::system_error&) {
    return refuse(Refusal::no_resources, own(Refusal::no_resources));
  } catch (const Bug& bug) {  // its words are ours
    return refuse(Refusal::internal_error, RunError(fmt::format("client {}: an internal error: {}",
                                                                client_.name, bug.what())));
  } catch (const std::exception&) {
    return refuse(Refusal::internal_error, own(Refusal::internal_error));
  }
}

void Node::refuse(Refusal reason, const std::string& detail) const {
  throw Refused{reason, RunError(fmt::format("client {}: {}", client_.name, detail))};
}

Message Node::dispatch(Message& request) {
  if (const auto* message = std::get_if<StartMessage>(&request)) return start(*message);
  if (const auto* message = std::get_if<SecureRequest>(&request)) return take_step(*message);
  if (auto* message = std::get_if<EncodeMessage>(&request)) {
    // In a run whose states are masked, no other question gets one that is not.
    if (secure_) refuse(Refusal::broken_protocol, "a state is asked for that is not masked");
    return encode(*message);
  }
  refuse(Refusal::not_a_request, "this message is not for a client");
}

SecureReply Node::reply(secure::Reply body) const { return {agreement_, std::move(body), run_}; }

Message Node::take_step(const SecureRequest& request) {
  if (!engine_ || !secure_)
    refuse(Refusal::not_started, "no program was started whose states are masked");
  if (request.run != run_) refuse(Refusal::another_run, "a request of another run");
  if (request.agreement != agreement_)
    refuse(Refusal::another_program, "a request for another program");
  if (const auto* asked = std::get_if<secure::KeysRequest>(&request.body))
    return reply(secure_->keys(*asked));
  if (const auto* asked = std::get_if<secure::ShareRequest>(&request.body))
    return reply(secure_->share(*asked));
  if (const auto* asked = std::get_if<secure::SignRequest>(&request.body))
    return reply(secure_->sign(*asked));
  if (const auto* asked = std::get_if<secure::UnmaskRequest>(&request.body))
    return reply(secure_->unmask(*asked));
  const auto& asked = std::get<secure::MaskRequest>(request.body);
  const Message state = unmasked_state(asked);
  const auto* plain = std::get_if<StateMessage>(&state);
  return plain == nullptr ? state : mask(asked, *plain);
}

void Node::masked_before(std::uint64_t next) {
  if (secure_) secure_.emplace(secure::Group(secure_->group()), identity_, run_, agreement_, next);
}

void Node::release_arrays() {
  if (!engine_) return;
  std::erase_if(client_.arrays, [&](const auto& array) { return engine_->has_array(array.first); });
}

Arrays Node::arrays() const {
  Arrays all = client_.arrays;
  if (!engine_) return all;
  for (const ir::Input& input : program_->plan->program.inputs) {
    if (all.count(input.name) != 0) continue;
    if (std::optional<Tensor> array = engine_->array(input.name))
      all.emplace(input.name, *std::move(array));
  }
  return all;
}

void Node::go_on(std::uint64_t sequence, std::optional<std::uint32_t> after) {
  last_.reset();
  last_state_.reset();
  sequence_ = sequence;
  last_round_ = after;
  any_round_ = !after && sequence > 0;
}

Message Node::start(const StartMessage& message) {
  engine_.reset();  // a start that fails leaves nothing started
  private_.reset();
  private_engine_.reset();
  secure_.reset();
  program_ = cache_.get(message.program, message.planning);
  if (!program_->plan) refuse(Refusal::program_errors, "the program has errors");
  if (program_->hash != message.plan_hash) {
    refuse(Refusal::another_plan,
           "the same text gives another plan here; client and server run different versions");
  }
  run_ = message.run;
  terms_ = message.privacy;
  agreement_ = agreement(program_->hash, message.bindings, message.group, terms_);
  if (message.group) join(*message.group);
  return or_refuse(Refusal::data_misfit, client_.name, [&]() -> Message {
    sizes_ = bind_client(program_->plan->program, client_, message.sizes);
    require_sizes(program_->plan->program, sizes_);
    rounds_ = rounds_of(*program_->plan);
    order_ = round_order(*program_->plan);
    if (!terms_.empty()) privacy::decode_terms(terms_);  // or it throws
    sampled_ = message.sampled;
    go_on(0);
    engine_ = std::make_unique<Engine>(cache_.encoders(program_, sizes_), client_, options_);
    return HelloMessage{agreement_, sizes_, run_};
  });
}

// Takes part in a run whose states are masked.
void Node::join(const secure::Group& group) {
  if (!identity_) throw secure::ProtocolError("this client has no key to take part with");
  if (const auto found = secure::unmaskable(*program_->plan))
    throw secure::ProtocolError(found->words);
  secure_.emplace(group, identity_, run_, agreement_);
}

// A round has its time: what a server may learn by asking twice, or in another order, is not in the plan.
void Node::check_order(const EncodeMessage& message) const {
  if (message.run != run_) refuse(Refusal::another_run, "a request of another run");
  if (message.agreement != agreement_)
    refuse(Refusal::another_program, "a request for another program");
  if (message.round >= rounds_.size())
    refuse(Refusal::no_such_round, fmt::format("the plan has no round {}", message.round));
  if (is_repeated(message)) return;  // asked again: the answer is the same
  if (sampled_ && message.sequence > sequence_) return;
  if (message.sequence != sequence_)
    refuse(Refusal::out_of_order,
           fmt::format("request {} was expected, not {}", sequence_, message.sequence));
  const std::set<int>& next = last_round_ ? order_.after[*last_round_] : order_.first;
  if (!any_round_ && next.count(static_cast<int>(message.round)) == 0)
    refuse(Refusal::out_of_order, fmt::format("round {} cannot come now", message.round));
}

bool Node::is_repeated(const EncodeMessage& message) const {
  return last_ && message.sequence == last_->sequence && message.round == last_->round &&
         std::equal(message.values.begin(), message.values.end(), last_->values.begin(),
                    last_->values.end(), same_bits);
}

const privacy::PrivatePlan* Node::private_plan() {
  if (engine_ && !terms_.empty() && !private_) prepare_private();
  return private_.get();
}

void Node::restore_private(ByteReader& saved) {
  private_plan();  // the rounds of a private run have an engine of their own
  (private_engine_ ? *private_engine_ : *engine_).restore_private(saved);
}

// Not when the program is started: what cannot be private is for the server to say, who knows the place.
void Node::prepare_private() {
  const ProgramCache::Private made = cache_.make_private(program_, sizes_, terms_);
  const std::int64_t most = made.plan->most_records() * noise_.clients;
  if (engine_->records() > most)
    throw RunError(fmt::format("there are {} records, and sums of a private run have room for {}",
                               engine_->records(), most));
  private_engine_ = std::make_unique<Engine>(made.encoders, *engine_);
  private_rounds_ = rounds_of(*made.plan->encoders());
  private_ = made.plan;
  if (!random_)
    random_.emplace(noise_.seed ? privacy::RandomBits::for_tests(*noise_.seed)
                                : privacy::RandomBits());
}

// What leaves for a round: sums of records; in a private run on their grids, and with this client's noise where it makes some.
std::vector<MergeState> Node::states_of(std::uint32_t number, const std::vector<Tensor>& values) {
  if (private_plan() == nullptr) {
    std::map<ir::NodeId, Tensor> received;
    for (std::size_t i = 0; i < values.size(); ++i)
      received.emplace(rounds_[number]->receives[i], values[i]);
    return engine_->encode(*rounds_[number], received);
  }
  const Round& round = *private_rounds_[number];
  std::map<ir::NodeId, Tensor> received;
  for (std::size_t i = 0; i < values.size(); ++i) received.emplace(round.receives[i], values[i]);
  std::vector<MergeState> states = private_engine_->encode(round, received);
  const privacy::At at = private_->promise().at;
  if (at == privacy::At::client || at == privacy::At::distributed)
    private_->add_noise(states, number, *random_, noise_.clients);
  return states;
}

Message Node::encode(EncodeMessage& message) {
  if (!engine_) refuse(Refusal::not_started, "no program was started");
  check_order(message);
  const Round& round = *rounds_[message.round];
  if (message.values.size() != round.receives.size()) {
    refuse(Refusal::values_misfit,
           fmt::format("round {} needs {} shared values, not {}", message.round,
                       round.receives.size(), message.values.size()));
  }
  if (last_state_ && is_repeated(message)) return *last_state_;
  for (std::size_t i = 0; i < round.receives.size(); ++i) {
    const Shape expected =
        cell_shape(program_->plan->program.graph[round.receives[i]].type(), sizes_);
    if (message.values[i].shape != expected) {
      refuse(Refusal::values_misfit, fmt::format("the shared value {} has the wrong shape",
                                                 describe(*program_->plan, round.receives[i])));
    }
  }
  return or_refuse(Refusal::cannot_encode, client_.name, [&]() -> Message {
    StateMessage state{agreement_, message.sequence, message.round,
                       states_of(message.round, message.values), run_};
    sequence_ = message.sequence + 1;
    last_round_ = message.round;
    any_round_ = false;
    last_ = std::move(message);
    last_state_.reset();
    if (private_) last_state_ = state;
    return state;
  });
}

}  // namespace starfold
