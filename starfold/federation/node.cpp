#include "starfold/federation/node.h"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"

namespace starfold {

std::shared_ptr<const CompiledProgram> ProgramCache::get(const ProgramText& text, bool optimize) {
  if (!last_ || !(last_->text == text) || last_optimize_ != optimize) {
    ProgramOptions options;
    options.signature = &signature_;
    options.optimize = optimize;
    last_ = compile_program(text, options);
    last_optimize_ = optimize;
  }
  return last_;
}

Node::Node(Client client, ProgramCache& cache, EngineOptions options)
    : client_(std::move(client)), cache_(cache), options_(options) {}

static std::string no_resources(const std::string& client) {
  return fmt::format("client {}: it has not enough memory or threads", client);
}

Bytes Node::handle(std::string_view request) {
  try {
    return encode_message(answer(decode_message(request)));
  } catch (const RunError& error) {
    return encode_message(RefuseMessage{error.what()});
  } catch (const std::bad_alloc&) {
    return encode_message(RefuseMessage{no_resources(client_.name)});
  } catch (const std::system_error&) {
    return encode_message(RefuseMessage{no_resources(client_.name)});
  } catch (const std::exception&) {
    // What an unexpected failure says may hold anything; only a fixed sentence leaves.
    return encode_message(RefuseMessage{fmt::format("client {}: an internal error", client_.name)});
  }
}

Message Node::answer(const Message& request) {
  if (const auto* message = std::get_if<StartMessage>(&request)) return start(*message);
  if (const auto* message = std::get_if<EncodeMessage>(&request)) return encode(*message);
  throw RunError(fmt::format("client {}: this message is not for a client", client_.name));
}

Message Node::start(const StartMessage& message) {
  program_ = cache_.get(message.program, message.optimize);
  if (!program_->plan)
    throw RunError(fmt::format("client {}: the program has errors", client_.name));
  if (program_->hash != message.plan_hash) {
    throw RunError(
        fmt::format("client {}: the same text gives another plan here; client and server run "
                    "different versions",
                    client_.name));
  }
  sizes_ = bind_client(program_->plan->program, client_, message.sizes);
  require_sizes(program_->plan->program, sizes_);
  rounds_ = rounds_of(*program_->plan);
  engine_ = std::make_unique<Engine>(program_->plan, sizes_, client_, options_);
  return HelloMessage{program_->hash, sizes_};
}

Message Node::encode(const EncodeMessage& message) {
  if (!engine_) throw RunError(fmt::format("client {}: no program was started", client_.name));
  if (message.plan_hash != program_->hash)
    throw RunError(fmt::format("client {}: a request for another program", client_.name));
  if (message.round >= rounds_.size())
    throw RunError(fmt::format("client {}: the plan has no round {}", client_.name, message.round));
  const Round& round = *rounds_[message.round];
  if (message.values.size() != round.receives.size()) {
    throw RunError(fmt::format("client {}: round {} needs {} shared values, not {}", client_.name,
                               message.round, round.receives.size(), message.values.size()));
  }
  std::map<ir::NodeId, Tensor> received;
  for (std::size_t i = 0; i < round.receives.size(); ++i) {
    const Shape expected =
        cell_shape(program_->plan->program.graph[round.receives[i]].type(), sizes_);
    if (message.values[i].shape != expected) {
      throw RunError(fmt::format("client {}: the shared value {} has the wrong shape", client_.name,
                                 describe(*program_->plan, round.receives[i])));
    }
    received.emplace(round.receives[i], message.values[i]);
  }
  return StateMessage{program_->hash, message.sequence, message.round,
                      engine_->encode(round, received)};
}

}  // namespace starfold
