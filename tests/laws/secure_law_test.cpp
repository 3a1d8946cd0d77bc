// Masks change nothing: a run whose states are masked has the bits of one in which the same integers are added in the open, and both
// are the plain run but for the rounding of sums.
#include <gtest/gtest.h>

#include "starfold/base/error.h"
#include "starfold/federation/node.h"
#include "starfold/runtime/machine.h"
#include "starfold/secure/masked_states.h"
#include "starfold/secure/protocol.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

// Masking takes three: where there are fewer, some are there twice.
Case with_enough_clients(Case c) {
  std::vector<Client>& clients = c.federation.clients;
  for (std::size_t i = 0; clients.size() < secure::least_members; ++i) {
    clients.push_back(clients[i]);
    clients.back().name += "_again";
  }
  return c;
}

// The states of all clients as integers, added up in the open.
Results in_the_open(const Case& c, const std::shared_ptr<const CompiledProgram>& program,
                    const SizeValues& sizes) {
  ProgramCache cache(*c.options.signature);
  std::vector<Node> nodes;
  StartMessage start;
  start.plan_hash = program->hash;
  start.program = program->text;
  start.planning = program->planning;
  start.sizes = sizes;
  for (const Client& client : c.federation.clients) {
    nodes.emplace_back(client, cache);
    nodes.back().answer(start);
  }
  Machine machine(program->plan, sizes, c.federation.settings);
  for (std::uint64_t sequence = 0; machine.round() != nullptr; ++sequence) {
    const Round& round = *machine.round();
    const secure::Layout layout = secure::masked_layout(*program->plan, round, sizes);
    secure::Words sum = secure::zeros(layout);
    EncodeMessage asked{program->hash, sequence, static_cast<std::uint32_t>(round.number), {}, {}};
    std::map<ir::NodeId, Tensor> values = machine.to_send();
    for (const ir::NodeId id : round.receives) asked.values.push_back(values.at(id));
    for (Node& node : nodes) {
      const Message answer = node.answer(asked);
      const auto* state = std::get_if<StateMessage>(&answer);
      if (state == nullptr) throw RunError("a client refuses");
      secure::combine(sum, secure::to_words(*program->plan, round, state->states), layout,
                      secure::Direction::add);
    }
    machine.absorb(secure::from_words(*program->plan, round, sizes, sum));
  }
  return machine.results();
}

Verdict masks_change_nothing(const Case& given) {
  if (given.federation.clients.empty()) return Verdict::nothing();
  const Case c = with_enough_clients(given);
  const Compiled program = compiled(c);
  if (!program.program || program.program->plan->rounds == 0) return Verdict::nothing();
  if (secure::unmaskable(*program.program->plan)) return Verdict::nothing();
  const Outcome plain = run_engine(c, *program.program);
  RunOptions options;
  options.secure = RunOptions::Secure{};
  const Outcome masked = run_engine(c, *program.program, options);
  if (!plain.report) return Verdict::nothing();
  std::optional<Results> open;
  try {
    open = in_the_open(c, program.program, plain.report->sizes);
  } catch (const RunError&) {  // other rounding may end a run: then it ends both
  }
  if (open.has_value() != masked.report.has_value())
    return "only one of the two ends: " + masked.error;
  return open ? same_bits(masked.report->results, *open) : std::nullopt;
}

TEST(SecureLaw, MasksChangeNothing) {
  // Programs whose folds are no sums cannot be masked, and say nothing.
  check_law("SecureLaw.MasksChangeNothing", {}, 200, masks_change_nothing, 0.2);
}

}  // namespace
}  // namespace starfold::laws
