#include "starfold/federation/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "starfold/base/error.h"

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

Coordinator::Coordinator(std::shared_ptr<const CompiledProgram> program, Settings settings,
                         std::vector<std::string> clients, bool optimize,
                         const std::atomic<bool>* stop)
    : program_(std::move(program)),
      settings_(std::move(settings)),
      stop_(stop),
      clients_(std::move(clients)) {
  require_clients(program_->plan->program, clients_);
  sizes_ = bind_settings(program_->plan->program, settings_);
  answered_.resize(clients_.size());
  request_ = encode_message(StartMessage{program_->hash, program_->text, sizes_, optimize});
  if (clients_.empty()) all_answered();  // nobody to wait for
}

void Coordinator::reject(std::size_t client, const std::string& reason) const {
  throw RunError(
      fmt::format("the answer of client {} cannot be used: {}", clients_[client], reason));
}

std::int64_t Coordinator::absorb(std::size_t client, std::string_view answer) {
  if (client >= clients_.size()) throw Bug(fmt::format("there is no client number {}", client));
  if (done()) reject(client, "the run has ended");
  if (answered_[client]) reject(client, "it has answered already");
  Message message;
  try {
    message = decode_message(answer);
  } catch (const RunError& error) {
    reject(client, error.what());
  }
  if (const auto* refusal = std::get_if<RefuseMessage>(&message)) {
    throw RunError(
        fmt::format("client {} refuses: {}", clients_[client], sentence(refusal->reason)));
  }
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
  if (++answers_ == clients_.size()) all_answered();
  return numbers;
}

void Coordinator::greet(std::size_t client, const HelloMessage& message) {
  if (message.plan_hash != program_->hash) reject(client, "it arrived at another plan");
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
  if (message.plan_hash != program_->hash) reject(client, "it belongs to another program");
  if (message.sequence != sequence_) reject(client, "it answers another request");
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
  // Merge as far as the order of clients allows, and let go of what was merged.
  while (merged_clients_ < clients_.size() && !waiting_[merged_clients_].empty()) {
    std::vector<MergeState>& states = waiting_[merged_clients_];
    if (merged_.empty()) {
      merged_ = std::move(states);
    } else {
      for (std::size_t i = 0; i < merged_.size(); ++i)
        round.merges[i].monoid->merge(merged_[i], states[i]);
    }
    states.clear();
    ++merged_clients_;
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

void Coordinator::ask() {
  answered_.assign(clients_.size(), false);
  answers_ = 0;
  waiting_.assign(clients_.size(), {});
  merged_.clear();
  merged_clients_ = 0;
  const Round* round = machine_->round();
  if (round == nullptr) {
    phase_ = Phase::done;
    request_.clear();
    return;
  }
  EncodeMessage message{program_->hash, sequence_, static_cast<std::uint32_t>(round->number), {}};
  std::map<ir::NodeId, Tensor> values = machine_->to_send();
  for (const ir::NodeId id : round->receives) message.values.push_back(std::move(values.at(id)));
  request_ = encode_message(message);
}

}  // namespace starfold
