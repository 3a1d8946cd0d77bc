// Laws of evaluation: however a program is cut, carried and optimized, its answer is the
// definition's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "starfold/base/error.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {}  // namespace

// The answer of a federation is the answer on the virtual global tensors, and what was promised
// about its range holds.
Verdict engine_equals_reference(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const Outcome reference = run_reference(c, *program.program);
  return compare(run_engine(c, *program.program), reference, rounding);
}

namespace {

TEST(Laws, EngineEqualsReference) {
  check_law("Laws.EngineEqualsReference", {}, 2000, engine_equals_reference);
}

TEST(Laws, EngineEqualsReferenceOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("Laws.EngineEqualsReferenceOnSpecialValues", options, 1000, engine_equals_reference);
}

// Small programs show a fault of one operation that large ones hide behind others.
TEST(Laws, EngineEqualsReferenceOnSmallPrograms) {
  GeneratorOptions options;
  options.statements = 2;
  options.depth = 3;
  options.functions = false;
  check_law("Laws.EngineEqualsReferenceOnSmallPrograms", options, 3000, engine_equals_reference);
}

// Blocks, threads and clients cut the records anywhere: the answer changes by rounding at most, and
// by nothing at all with the number of threads.
Verdict cut_invariance(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const Outcome whole = run_engine(c, *program.program);
  for (const std::int64_t block : {1, 3}) {
    RunOptions options;
    options.block_records = block;
    if (const Verdict broken = compare(run_engine(c, *program.program, options), whole, rounding)) {
      return fmt::format("with blocks of {}: {}", block, *broken);
    }
  }
  RunOptions threaded;
  threaded.threads = 3;
  threaded.block_records = 2;
  RunOptions alone = threaded;
  alone.threads = 1;
  const Outcome many = run_engine(c, *program.program, threaded);
  const Outcome one = run_engine(c, *program.program, alone);
  if (many.report && one.report) {
    if (const Verdict broken = same_bits(many.report->results, one.report->results)) {
      return "with threads: " + *broken;
    }
  }
  Random random = c.choices();
  Case dealt = c;
  dealt.federation = deal_again(random, c.program, c.federation, random.between(1, 7));
  if (const Verdict broken = compare(run_engine(dealt, *program.program), whole, rounding)) {
    return "with records dealt again: " + *broken;
  }
  return std::nullopt;
}

TEST(Laws, CutInvariance) { check_law("Laws.CutInvariance", {}, 900, cut_invariance); }

TEST(Laws, CutInvarianceOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("Laws.CutInvarianceOnSpecialValues", options, 500, cut_invariance);
}

// The optimizer changes how a program is computed, never what it says.
Verdict optimizer_off(const Case& c) {
  const Compiled optimized = compiled(c);
  const Compiled plain = compiled(c, false);
  if (!optimized.error.empty()) return optimized.error;
  return compare(run_engine(c, *optimized.program), run_engine(c, *plain.program), rounding);
}

TEST(Laws, OptimizerOff) { check_law("Laws.OptimizerOff", {}, 1200, optimizer_off); }

TEST(Laws, OptimizerOffOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("Laws.OptimizerOffOnSpecialValues", options, 600, optimizer_off);
}

// A run by hand: every message as its bytes, with a look at each.
struct Carried {
  Results results;
  std::vector<std::pair<std::size_t, std::size_t>> sizes;  // of requests and answers
  std::string changed;                                     // what became of a message on its way
};

Carried carry(const Case& c, const std::shared_ptr<const CompiledProgram>& program) {
  std::vector<std::string> names;
  for (const Client& client : c.federation.clients) names.push_back(client.name);
  Coordinator coordinator(program, c.federation.settings, names);
  ProgramCache cache(*c.options.signature);
  std::vector<Node> nodes;
  for (const Client& client : c.federation.clients) nodes.emplace_back(client, cache);
  Carried carried;
  const auto through = [&](const Bytes& bytes) {
    const Bytes again = encode_message(decode_message(bytes));
    if (again != bytes) carried.changed = "a message reads as another one";
    return again;
  };
  while (!coordinator.done()) {
    const Bytes request = through(coordinator.request());
    std::vector<Bytes> answers;
    for (Node& node : nodes) answers.push_back(through(node.handle(request)));
    for (const Bytes& answer : answers) {
      if (answer.size() != answers[0].size())
        carried.changed = "clients send messages of different size";
    }
    carried.sizes.emplace_back(request.size(), answers[0].size());
    // In any order: the coordinator merges in the order of clients.
    for (std::size_t i = nodes.size(); i-- > 0;) coordinator.absorb(i, answers[i]);
  }
  carried.results = coordinator.results();
  return carried;
}

// def:shared-state-factorization: what a client sends lies in M, a fixed product of tensor spaces,
// and survives the way as bytes.
Verdict messages_serialized(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const Outcome direct = run_engine(c, *program.program);
  try {
    const Carried carried = carry(c, program.program);
    if (!carried.changed.empty()) return carried.changed;
    if (!direct.report) return "only one run stopped: " + direct.error;
    return same_bits(carried.results, direct.report->results);
  } catch (const RunError& error) {
    if (direct.report) return fmt::format("only one run stopped: {}", error.what());
  }
  return std::nullopt;
}

TEST(Laws, MessagesSerialized) {
  check_law("Laws.MessagesSerialized", {}, 800, messages_serialized);
}

// def:shared-state-factorization: M is independent of the federation and of the record counts, so the
// messages of a round have one size whatever the clients hold.
Verdict message_size_fixed(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  Random random = c.choices();
  Case other = c;
  const Federation fresh = generate_federation(random, c.program);
  other.federation.clients = fresh.clients;
  try {
    const Carried a = carry(c, program.program);
    const Carried b = carry(other, program.program);
    // Loops may end elsewhere; the rounds that both run are the same ones while none has ended.
    const bool loops = !program.program->plan->program.loops.empty();
    if (!loops && a.sizes.size() != b.sizes.size()) return "another number of rounds";
    if (loops && a.results.iterations != b.results.iterations) return Verdict::nothing();
    for (std::size_t i = 0; i < a.sizes.size() && i < b.sizes.size(); ++i) {
      if (a.sizes[i] != b.sizes[i]) {
        return fmt::format("message {}: {} and {} bytes in one federation, {} and {} in another", i,
                           a.sizes[i].first, a.sizes[i].second, b.sizes[i].first,
                           b.sizes[i].second);
      }
    }
  } catch (const RunError&) {
    return Verdict::nothing();
  }
  return std::nullopt;
}

TEST(Laws, MessageSizeFixed) { check_law("Laws.MessageSizeFixed", {}, 800, message_size_fixed); }

// prop:round-wise-shared-memory: from one round to the next nothing is kept but shared values, so
// clients that forget everything after each answer give the same run.
Verdict round_wise_shared_memory(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const Outcome kept = run_engine(c, *program.program);
  std::vector<std::string> names;
  for (const Client& client : c.federation.clients) names.push_back(client.name);
  try {
    Coordinator coordinator(program.program, c.federation.settings, names);
    ProgramCache cache(*c.options.signature);
    const Bytes start = coordinator.request();
    while (!coordinator.done()) {
      const Bytes request = coordinator.request();
      for (std::size_t i = 0; i < names.size(); ++i) {
        Node fresh(c.federation.clients[i], cache);
        if (request != start) fresh.handle(start);
        if (request != start) fresh.go_on(static_cast<std::uint64_t>(coordinator.rounds_run()));
        coordinator.absorb(i, fresh.handle(request));
      }
    }
    if (!kept.report) return "only one run stopped: " + kept.error;
    return same_bits(coordinator.results(), kept.report->results);
  } catch (const RunError& error) {
    if (kept.report) return fmt::format("only one run stopped: {}", error.what());
  }
  return std::nullopt;
}

TEST(Laws, RoundWiseSharedMemory) {
  check_law("Laws.RoundWiseSharedMemory", {}, 800, round_wise_shared_memory);
}

}  // namespace
}  // namespace starfold::laws
