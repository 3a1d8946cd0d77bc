#include "starfold/federation/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
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
      agreement_(agreement(program_->hash, identity_.bindings)),
      clients_(std::move(clients)) {
  require_clients(program_->plan->program, clients_);
  sizes_ = bind_settings(program_->plan->program, settings_);
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
               identity_.sample.clients > 0};
  request_ = encode_message(greeting_);
  if (clients_.empty()) all_answered();  // nobody to wait for
}

Bytes Coordinator::greeting(std::size_t client) const {
  StartMessage message = greeting_;
  if (!identity_.sources.empty()) message.source = identity_.sources.at(client);
  return encode_message(message);
}

Bytes Coordinator::request(std::size_t client) const {
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
  if (answered_[client]) reject<LateAnswer>(client, "it has answered already");
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
  } else {
    auto* state = std::get_if<StateMessage>(&message);
    if (state == nullptr) reject(client, "an encoded state was expected");
    numbers = numbers_in(state->states);
    take(client, std::move(*state));
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

void Coordinator::take(std::size_t client, StateMessage message) {
  if (message.agreement != agreement_) reject(client, "it belongs to another program");
  if (message.run != identity_.run) reject(client, "it belongs to another run");
  if (message.sequence != sequence_) reject<LateAnswer>(client, "it answers another request");
  const Round& round = *machine_->round();
  if (message.round != static_cast<std::uint32_t>(round.number))
    reject(client, "it belongs to another round");
  if (message.states.size() != round.merges.size())
    reject(client, "it has the wrong number of values");
  for (std::size_t i = 0; i < round.merges.size(); ++i) {
    const std::string wrong = invalid_state(*round.merges[i].monoid, message.states[i],
                                            machine_->fold_shape(round.merges[i]));
    if (!wrong.empty())
      reject(client,
             fmt::format("{}: {}", describe_fold(*program_->plan, round.merges[i].fold), wrong));
  }
  waiting_[client] = std::move(message.states);
  merge_waiting();
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
    machine_.emplace(program_->plan, sizes_, settings_, stop_);
    phase_ = Phase::running;
  } else {
    machine_->absorb(merged_);
    ++sequence_;
  }
  ask();
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
    return;
  }
  EncodeMessage message{
      agreement_, sequence_, static_cast<std::uint32_t>(round->number), {}, identity_.run};
  std::map<ir::NodeId, Tensor> values = machine_->to_send();
  for (const ir::NodeId id : round->receives) message.values.push_back(std::move(values.at(id)));
  request_ = encode_message(message);
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
    machine_.emplace(program_->plan, sizes_, settings_, in, stop_);
    phase_ = Phase::running;
    ask();
  }
  in.end();
}

}  // namespace starfold
