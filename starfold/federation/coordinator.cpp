#include "starfold/federation/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/privacy/noise/shares.h"
#include "starfold/secure/masked_states.h"
#include "starfold/tensor/random_bits.h"

namespace starfold {
namespace {

void require_clients(const ir::Program& program, const std::vector<std::string>& clients) {
  const bool reads_records = std::any_of(program.inputs.begin(), program.inputs.end(),
                                         [](const ir::Input& i) { return i.type.federated(); });
  if (clients.empty() && reads_records)
    throw RunError("a federation needs at least one client: the program reads records");
  std::set<std::string_view> names;
  for (const std::string& name : clients) {
    if (!names.insert(name).second) throw RunError(fmt::format("two clients are named {}", name));
  }
}

bool has_nan(const MergeState& state) {
  return std::any_of(state.begin(), state.end(), [](const Tensor& part) {
    return std::any_of(part.data.begin(), part.data.end(), [](double x) { return std::isnan(x); });
  });
}

// What bounds may rest on: the values of shared inputs that are not huge. And how many shares of noise there are at least.
void complete(privacy::Terms& terms, const Settings& settings,
              const std::optional<secure::Group>& group) {
  if (group) terms.shares = privacy::sure_shares(*group);
  constexpr std::int64_t most_numbers = 4096;
  for (const auto& [name, value] : settings.shared) {
    if (value.count() <= most_numbers) terms.inputs.emplace(name, value);
  }
  terms.predictable = terms.promise.seed.has_value();
}

}  // namespace

ClientRefused::ClientRefused(const std::string& client, Refusal reason)
    : RunError(fmt::format("client {} refuses: {}", client, sentence(reason))),
      client_(client),
      reason_(reason) {}

Coordinator::Coordinator(std::shared_ptr<const CompiledProgram> program, Settings settings,
                         std::vector<std::string> clients, const std::atomic<bool>* stop,
                         RunIdentity identity)
    : program_(std::move(program)),
      settings_(std::move(settings)),
      stop_(stop),
      identity_(std::move(identity)),
      clients_(std::move(clients)) {
  require_clients(program_->plan->program, clients_);
  if (identity_.group) require_maskable();
  sizes_ = bind_settings(program_->plan->program, settings_);
  Bytes terms;
  if (identity_.terms) {
    // An owner's trial says how many shares there would be, and nothing of it leaves.
    if (identity_.terms->promise.at == privacy::At::distributed && !identity_.group &&
        identity_.terms->shares == 0)
      throw privacy::NotPrivate(
          "the run cannot be private: at = \"distributed\" needs [secure_aggregation], or the "
          "server "
          "would see what has only a share of the noise");
    complete(*identity_.terms, settings_, identity_.group);
    privacy::require_bounds(
        *program_->plan, identity_.terms->promise,
        privacy::with_defaults(program_->plan->program, {sizes_, identity_.terms->inputs}));
    terms = privacy::encode_terms(*identity_.terms);
  }
  agreement_ = agreement(program_->hash, identity_.bindings, identity_.group, terms);
  if (identity_.guarded) split_ = ir::find_split(program_->plan->program);
  answered_.resize(clients_.size());
  left_.resize(clients_.size());
  asked_.assign(clients_.size(), true);
  greeting_ = {program_->hash,
               program_->text,
               sizes_,
               program_->planning,
               identity_.run,
               identity_.study,
               {},
               identity_.bindings,
               identity_.group,
               identity_.sample.clients > 0,
               std::move(terms)};
  request_ = encode_message(greeting_);
  if (clients_.empty()) all_answered();  // nobody to wait for
}

Bytes Coordinator::greeting(std::size_t client) const {
  StartMessage message = greeting_;
  if (!identity_.sources.empty()) message.source = identity_.sources.at(client);
  return encode_message(message);
}

Bytes Coordinator::request(std::size_t client) const {
  if (secure_)
    return encode_message(SecureRequest{
        agreement_, secure_->request(static_cast<std::uint32_t>(client)), identity_.run});
  return phase_ == Phase::greeting ? greeting(client) : request_;
}

template <typename Fault>
void Coordinator::reject(std::size_t client, const std::string& reason) const {
  throw Fault(fmt::format("the answer of client {} cannot be used: {}", clients_[client], reason));
}

std::int64_t Coordinator::absorb(std::size_t client, std::string_view answer) {
  if (client >= clients_.size()) throw Bug(fmt::format("there is no client number {}", client));
  if (done()) reject(client, "the run has ended");
  if (left_[client]) reject(client, "the run went on without it");
  if (!secure_ && answered_[client]) reject<LateAnswer>(client, "it has answered already");
  Message message;
  try {
    message = decode_message(answer);
  } catch (const RunError& error) {
    reject(client, error.what());
  }
  if (const auto* refusal = std::get_if<RefuseMessage>(&message))
    throw ClientRefused(clients_[client], refusal->reason);
  std::int64_t numbers = 0;
  if (phase_ == Phase::greeting) {
    const auto* hello = std::get_if<HelloMessage>(&message);
    if (hello == nullptr) reject(client, "a greeting was expected");
    greet(client, *hello);
  } else if (secure_) {
    auto* reply = std::get_if<SecureReply>(&message);
    // A state that anyone can read is not taken, from nobody.
    if (reply == nullptr) reject(client, "a step of secure aggregation was expected");
    return take(client, std::move(*reply));
  } else {
    auto* state = std::get_if<StateMessage>(&message);
    if (state == nullptr) reject(client, "an encoded state was expected");
    numbers = take(client, std::move(*state));
  }
  answered_[client] = true;
  count_answer();
  return numbers;
}

void Coordinator::leave(std::size_t client) {
  if (!awaits(client)) throw Bug("a client leaves that is not awaited");
  left_[client] = true;
  departures_.push_back({client, rounds_run()});
  if (departures_.size() == clients_.size()) throw RunError("no client is left");
  if (secure_) {
    secure_->drop(static_cast<std::uint32_t>(client));
    go_on_masking();
    return;
  }
  merge_waiting();
  count_answer();
}

void Coordinator::count_answer() {
  ++answers_;
  if (answers_ == clients_.size()) all_answered();
}

void Coordinator::greet(std::size_t client, const HelloMessage& message) {
  if (message.agreement != agreement_) reject(client, "it arrived at another plan");
  if (message.run != identity_.run) reject(client, "it belongs to another run");
  // All of it is looked at before any of it is believed.
  for (const auto& [name, value] : message.sizes) {
    const auto& declared = program_->plan->program.sizes;
    const bool known = std::any_of(
        declared.begin(), declared.end(),
        [&, &sought = name](const ir::SizeVariable& size) { return size.name == sought; });
    if (!known) reject(client, fmt::format("the program has no size named {}", name));
    if (value < 1) reject(client, fmt::format("its size {} is not positive", name));
    const auto found = sizes_.find(name);
    if (found == sizes_.end() || found->second == value) continue;
    const auto from = size_from_.find(name);
    throw RunError(fmt::format("clients disagree on the size {}: {} has {}, {} has {}", name,
                               from == size_from_.end() ? "the server" : "client " + from->second,
                               found->second, "client " + clients_[client], value));
  }
  for (const auto& [name, value] : message.sizes) {
    if (sizes_.emplace(name, value).second) size_from_[name] = clients_[client];
  }
}

std::int64_t Coordinator::take(std::size_t client, StateMessage message) {
  if (message.agreement != agreement_) reject(client, "it belongs to another program");
  if (message.run != identity_.run) reject(client, "it belongs to another run");
  if (message.sequence != sequence_) reject<LateAnswer>(client, "it answers another request");
  const Round& round = *machine_->round();
  if (message.round != static_cast<std::uint32_t>(round.number))
    reject(client, "it belongs to another round");
  if (message.states.size() != round.merges.size())
    reject(client, "it has the wrong number of values");
  for (std::size_t i = 0; private_ && i < round.merges.size(); ++i) {
    const std::vector<Shape> shapes =
        state_shapes(*round.merges[i].monoid, machine_->fold_shape(round.merges[i]));
    const std::string wrong = private_->wrong_with(message.states[i], shapes);
    if (!wrong.empty()) reject(client, wrong);
  }
  for (std::size_t i = 0; !private_ && i < round.merges.size(); ++i) {
    const std::string wrong = invalid_state(*round.merges[i].monoid, message.states[i],
                                            machine_->fold_shape(round.merges[i]));
    if (!wrong.empty())
      reject(client,
             fmt::format("{}: {}", describe_fold(*program_->plan, round.merges[i].fold), wrong));
    // What comes nevertheless is a fault, and would be in every later value.
    if (identity_.guarded && !split_[round.merges[i].fold] &&
        has_nan(plain_state(*round.merges[i].monoid, message.states[i])))
      reject(client,
             fmt::format("{}: it holds nan", describe_fold(*program_->plan, round.merges[i].fold)));
  }
  std::int64_t numbers = 0;
  for (std::size_t i = 0; i < round.merges.size(); ++i)
    numbers += numbers_in(*round.merges[i].monoid, message.states[i]);
  waiting_[client] = std::move(message.states);
  merge_waiting();
  return numbers;
}

// Merges as far as the order of clients allows, and lets go of what was merged.
void Coordinator::merge_waiting() {
  if (phase_ != Phase::running) return;
  const Round& round = *machine_->round();
  for (; merged_clients_ < clients_.size(); ++merged_clients_) {
    if (left_[merged_clients_] || !asked_[merged_clients_]) continue;
    std::vector<MergeState>& states = waiting_[merged_clients_];
    if (states.empty()) return;
    if (merged_.empty()) {
      merged_ = std::move(states);
    } else {
      for (std::size_t i = 0; i < merged_.size(); ++i)
        round.merges[i].monoid->merge(merged_[i], states[i]);
    }
    states.clear();
  }
}

void Coordinator::all_answered() {
  if (phase_ == Phase::greeting) {
    require_sizes(program_->plan->program, sizes_);
    require_shapes(program_->plan->program, settings_, sizes_);
    require_memory(program_->plan->program, settings_, sizes_);
    begin_private();
    machine_.emplace(program_->plan, sizes_, settings_, stop_);
    phase_ = Phase::running;
  } else {
    release();
  }
  ask();
}

// --- noise ------------------------------------------------------------------------------------------

void Coordinator::begin_private() {
  if (!identity_.terms) return;
  private_ = std::make_shared<const privacy::PrivatePlan>(program_->plan, sizes_, *identity_.terms);
  const std::optional<std::uint64_t>& seed = identity_.terms->promise.seed;
  random_.emplace(seed ? privacy::RandomBits::for_tests(*seed) : privacy::RandomBits());
}

// Lets the program see what the clients' states have become together. In a private run nothing sees it before noise was added.
void Coordinator::release() {
  const auto round = static_cast<std::uint32_t>(machine_->round()->number);
  if (private_) {
    if (private_->promise().at == privacy::At::server)
      private_->add_noise(merged_, round, *random_);
    private_->to_values(merged_, round);
    ran_.push_back(round);
  }
  machine_->absorb(merged_);
  ++sequence_;
}

// What a private run masks is whole numbers.
secure::Numbers Coordinator::masked_numbers() const {
  return private_ ? secure::Numbers::whole : secure::Numbers::any;
}

std::optional<privacy::Report> Coordinator::privacy() const {
  if (!private_) return std::nullopt;
  return privacy::report_of(*private_, ran_);
}

// Who is asked in the round at hand. A client that was not drawn is as one that has answered with nothing.
void Coordinator::draw() {
  asked_.assign(clients_.size(), true);
  const auto wanted = static_cast<std::size_t>(identity_.sample.clients);
  if (wanted == 0) return;
  std::vector<std::uint32_t> order = shuffled(
      clients_.size(), seed_of(identity_.sample.seed, "the sample"), Stream::clients, sequence_);
  std::erase_if(order, [&](std::uint32_t client) { return left_[client]; });
  for (std::size_t i = wanted; i < order.size(); ++i) asked_[order[i]] = false;
}

void Coordinator::ask() {
  draw();
  answers_ = 0;
  for (std::size_t client = 0; client < clients_.size(); ++client) {
    answered_[client] = !asked_[client];
    answers_ += answered_[client] || left_[client] ? 1 : 0;
  }
  waiting_.assign(clients_.size(), {});
  merged_.clear();
  merged_clients_ = 0;
  const Round* round = machine_->round();
  if (round == nullptr) {
    phase_ = Phase::done;
    request_.clear();
    if (private_ && private_->promise().at == privacy::At::output) {
      noised_ = machine_->results();
      private_->add_noise(noised_->outputs, *random_);
    }
    secure_.reset();
    return;
  }
  if (identity_.group) {
    begin_masking();
    return;
  }
  request_ =
      encode_message(EncodeMessage{agreement_, sequence_, static_cast<std::uint32_t>(round->number),
                                   values_to_send(*round), identity_.run});
}

std::vector<Tensor> Coordinator::values_to_send(const Round& round) const {
  std::vector<Tensor> sent;
  std::map<ir::NodeId, Tensor> values = machine_->to_send();
  for (const ir::NodeId id : round.receives) sent.push_back(std::move(values.at(id)));
  return sent;
}

// --- masked states --------------------------------------------------------------------------------

void Coordinator::require_maskable() const {
  if (const std::string wrong = secure::wrong_with(*identity_.group); !wrong.empty())
    throw secure::NotMaskable(wrong);
  if (identity_.group->members.size() != clients_.size())
    throw Bug("the group that masks is not that of the clients");
  if (const auto found = secure::unmaskable(*program_->plan))
    throw secure::NotMaskable(found->words, program_->plan->program.graph[found->fold].span);
}

namespace {

// Keys are made for so many rounds at once: as many as there are, or a handful where a loop decides.
constexpr std::uint32_t rounds_of_epoch = 16;
// A client that loses its keys more often than this in one round is not started anew, but broken.
constexpr std::int64_t most_renewals = 50;

std::uint32_t epoch_length(const Plan& plan) {
  const std::vector<const Round*> rounds = rounds_of(plan);
  const bool loops =
      std::any_of(rounds.begin(), rounds.end(), [](const Round* r) { return r->loop_depth > 0; });
  return loops ? rounds_of_epoch
               : std::min(rounds_of_epoch, static_cast<std::uint32_t>(rounds.size()));
}

}  // namespace

void Coordinator::new_epoch() {
  std::vector<bool> there;
  for (const bool left : left_) there.push_back(!left);
  secure_.emplace(*identity_.group, identity_.run, agreement_, ++epoch_, sequence_,
                  epoch_length(*program_->plan), there);
}

void Coordinator::begin_masking() {
  const Round& round = *machine_->round();
  if (secure_ && secure_->stage() == secure::Server::Stage::ready)
    masking_departures_ = departures_.size();
  // Masks with a client that has left since would have to be taken away in every round: better keys without it.
  const bool same_clients = secure_ && departures_.size() == masking_departures_;
  if (!same_clients ||
      !secure_->begin(sequence_, static_cast<std::uint32_t>(round.number), values_to_send(round),
                      secure::masked_layout(*program_->plan, round, sizes_, masked_numbers())))
    new_epoch();
}

// What the last answer, or the last that was not waited for, has ended.
void Coordinator::go_on_masking() {
  if (secure_->stage() == secure::Server::Stage::ready) {
    begin_masking();
    return;
  }
  if (secure_->stage() != secure::Server::Stage::done) return;
  const Round& round = *machine_->round();
  merged_ = secure::from_words(*program_->plan, round, sizes_, secure_->sum(), masked_numbers());
  for (std::size_t i = 0; !private_ && i < merged_.size(); ++i) {
    const std::string wrong =
        invalid_state(*round.merges[i].monoid, merged_[i], machine_->fold_shape(round.merges[i]));
    if (!wrong.empty())
      throw RunError(fmt::format("what the clients' masked states add up to cannot be used: {}: {}",
                                 describe_fold(*program_->plan, round.merges[i].fold), wrong));
  }
  release();
  renewals_ = 0;
  ask();
}

std::int64_t Coordinator::take(std::size_t client, SecureReply message) {
  if (message.agreement != agreement_) reject(client, "it belongs to another program");
  if (message.run != identity_.run) reject(client, "it belongs to another run");
  std::int64_t numbers = 0;
  if (std::holds_alternative<secure::MaskedReply>(message.body)) {
    for (const secure::Piece& piece :
         secure::masked_layout(*program_->plan, *machine_->round(), sizes_, masked_numbers()))
      numbers += static_cast<std::int64_t>(piece.count);
  }
  try {
    secure_->absorb(static_cast<std::uint32_t>(client), std::move(message.body));
  } catch (const secure::LateReply& late) {
    reject<LateAnswer>(client, late.what());
  } catch (const secure::UnusableReply& unusable) {
    reject(client, unusable.what());
  }
  go_on_masking();
  return numbers;
}

bool Coordinator::can_spare(std::size_t client) const {
  using Stage = secure::Server::Stage;
  return secure_ && (secure_->stage() == Stage::sign || secure_->stage() == Stage::unmask) &&
         secure_->can_spare(static_cast<std::uint32_t>(client));
}

void Coordinator::spare(std::size_t client) {
  if (!can_spare(client)) throw Bug("a client is spared that is needed");
  secure_->drop(static_cast<std::uint32_t>(client));
  go_on_masking();
}

void Coordinator::renew_keys() {
  if (!secure_) throw Bug("keys are renewed where none are needed");
  if (++renewals_ > most_renewals)
    throw RunError("clients lose the keys of secure aggregation again and again");
  new_epoch();
}

// --- checkpoints ----------------------------------------------------------------------------------

// Of what a run is given besides its program, bindings and clients.
std::string Coordinator::settings_hash() const {
  ByteWriter out;
  out.numbers(settings_.sizes);
  for (const auto& [name, value] : settings_.shared) {
    out.text(name);
    out.tensor(value);
  }
  for (const std::string& source : identity_.sources) out.text(source);
  if (identity_.sample.clients > 0) {
    out.number(identity_.sample.clients);
    out.number(identity_.sample.seed);
  }
  return sha256_hex(out.take());
}

Bytes Coordinator::save() const {
  ByteWriter out;
  out.text(identity_.run);
  out.text(agreement_);
  out.text(settings_hash());
  out.number(static_cast<std::uint32_t>(clients_.size()));
  for (const std::string& client : clients_) out.text(client);
  out.number(static_cast<std::uint8_t>(phase_));
  out.number(sequence_);
  out.number(static_cast<std::uint32_t>(departures_.size()));
  for (const Departure& departure : departures_) {
    out.number(static_cast<std::uint64_t>(departure.client));
    out.number(departure.rounds);
  }
  if (phase_ == Phase::running) {
    out.numbers(sizes_);
    machine_->save(out);
    // What was released is in the values above: no round is noised a second time.
    out.number(static_cast<std::uint32_t>(ran_.size()));
    for (const std::uint32_t round : ran_) out.number(round);
  }
  if (identity_.group) {
    // What was masked is masked anew with other keys, unless shares may have been given away for it already.
    out.number(epoch_);
    out.flag(secure_ && secure_->can_save());
    if (secure_ && secure_->can_save()) secure_->save(out);
  }
  return out.take();
}

Coordinator Coordinator::resume(std::shared_ptr<const CompiledProgram> program, Settings settings,
                                std::vector<std::string> clients, std::string_view saved,
                                const std::atomic<bool>* stop, RunIdentity identity) {
  ByteReader in(saved);
  identity.run = in.text();
  Coordinator coordinator(std::move(program), std::move(settings), std::move(clients), stop,
                          std::move(identity));
  coordinator.restore(in);
  return coordinator;
}

void Coordinator::restore(ByteReader& in) {
  if (in.text() != agreement_)
    throw RunError("the checkpoint belongs to another program, or to other bindings of its inputs");
  if (in.text() != settings_hash())
    throw RunError(
        "the checkpoint belongs to other values of inputs and sizes, or to other sources");
  std::vector<std::string> names;
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) names.push_back(in.text());
  if (names != clients_) throw RunError("the checkpoint belongs to other clients");
  const auto phase = in.number<std::uint8_t>();
  if (phase > static_cast<std::uint8_t>(Phase::running)) ByteReader::fail();
  sequence_ = in.number<std::uint64_t>();
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) {
    const auto client = in.number<std::uint64_t>();
    if (client >= clients_.size() || left_[client]) ByteReader::fail();
    left_[client] = true;
    departures_.push_back({client, in.number<std::int64_t>()});
  }
  answers_ = departures_.size();
  if (answers_ == clients_.size() && !clients_.empty()) ByteReader::fail();
  if (static_cast<Phase>(phase) == Phase::running) {
    sizes_ = in.numbers();
    require_sizes(program_->plan->program, sizes_);
    require_shapes(program_->plan->program, settings_, sizes_);
    require_memory(program_->plan->program, settings_, sizes_);
    begin_private();
    machine_.emplace(program_->plan, sizes_, settings_, in, stop_);
    for (auto left = in.number<std::uint32_t>(); left > 0; --left) {
      ran_.push_back(in.number<std::uint32_t>());
      if (ran_.back() >= static_cast<std::uint32_t>(program_->plan->rounds)) ByteReader::fail();
    }
    phase_ = Phase::running;
  }
  if (identity_.group) {
    epoch_ = in.number<std::uint32_t>();
    masking_departures_ = departures_.size();
    if (in.flag())
      secure_ = secure::Server::restore(*identity_.group, identity_.run, agreement_, in);
    for (const Departure& departure : departures_) {
      if (secure_) secure_->drop(static_cast<std::uint32_t>(departure.client));
    }
  }
  in.end();
  // Before the end of a round that is being unmasked, there is nothing new to ask.
  if (phase_ == Phase::running && !secure_) ask();
}

}  // namespace starfold
