// Laws of values per client. Any program is a block: its statements between the braces of `each client`, its outputs as
// results. So random programs give random blocks, and what a block means is what the program means to a federation of one.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <variant>

#include "starfold/base/error.h"
#include "starfold/plan/explain.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/machine.h"
#include "starfold/syntax/parser.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

// The text of statements without their traces, which a block has none of.
class WithoutTraces {
 public:
  explicit WithoutTraces(const ProgramText& text) : text_(text.text) {
    sources_.add(text.name, text.text);
    file_ = parse(sources_, 0, diagnostics_);
    find(file_.items);
  }

  const ast::File& file() const { return file_; }
  std::string operator()(Span span) const {
    std::string out;
    for (std::uint32_t at = span.begin; at < span.end; ++at) {
      const auto trace = traces_.find(at);
      if (trace != traces_.end()) at = trace->second;
      if (at < span.end) out += text_[at];
    }
    return out;
  }

 private:
  void find(const ast::Block& block) {
    for (const ast::Stmt& stmt : block) {
      if (std::holds_alternative<ast::Trace>(stmt.node)) traces_[stmt.span.begin] = stmt.span.end;
      if (const auto* loop = std::get_if<ast::Repeat>(&stmt.node)) find(loop->body);
      if (const auto* fn = std::get_if<ast::Fn>(&stmt.node)) find(fn->body);
    }
  }

  std::string text_;
  SourceMap sources_;
  Diagnostics diagnostics_;
  ast::File file_;
  std::map<std::uint32_t, std::uint32_t> traces_;
};

// A module's functions without traces.
std::string without_traces(const std::string& text) {
  const WithoutTraces strip({"module.fold", text, {}});
  return strip({0, 0, static_cast<std::uint32_t>(text.size())});
}

// A program in the parts that a block is made of.
struct Parts {
  std::string head;  // what stands outside
  std::string body;
  std::vector<std::string> results;  // the names of its outputs
  std::vector<std::string> values;   // and what each is
  std::string plain;                 // the program itself, without traces
};

std::optional<Parts> parts_of(const Case& c) {
  const WithoutTraces text(c.program.text);
  Parts parts;
  for (const ast::Stmt& stmt : text.file().items) {
    if (std::holds_alternative<ast::Trace>(stmt.node)) continue;
    const std::string line = text(stmt.span) + "\n";
    parts.plain += line;
    const auto* output = std::get_if<ast::Output>(&stmt.node);
    const bool outside = std::holds_alternative<ast::Input>(stmt.node) ||
                         std::holds_alternative<ast::SizeDecl>(stmt.node) ||
                         std::holds_alternative<ast::Import>(stmt.node) ||
                         std::holds_alternative<ast::Fn>(stmt.node);
    if (output == nullptr) {
      (outside ? parts.head : parts.body) += line;
      continue;
    }
    parts.results.push_back(output->name.text);
    parts.values.push_back(output->value ? text(output->value->span) : output->name.text);
  }
  if (parts.values.empty()) return std::nullopt;
  return parts;
}

// Several names or values as one: (a, b), or a alone.
std::string tuple(const std::vector<std::string>& items) {
  return items.size() == 1 ? items.front() : fmt::format("({})", fmt::join(items, ", "));
}
std::vector<std::string> with(std::string_view prefix, const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back(std::string(prefix) + name);
  return result;
}
std::string block(const std::string& names, const std::string& body, const std::string& values) {
  return fmt::format("let {} = each client {{\n{}{}\n}}\n", names, body, values);
}
// The case with another program.
Case with_text(const Case& c, std::string text) {
  Case other = c;
  other.program.text.text = std::move(text);
  for (auto& [name, module] : other.program.text.modules) module = without_traces(module);
  return other;
}

// A program and the same as a block.
struct Wrapped {
  Case plain;  // without traces
  Case block;
  std::vector<std::string> results;
};

std::optional<Wrapped> wrap(const Case& c) {
  const std::optional<Parts> parts = parts_of(c);
  if (!parts) return std::nullopt;
  std::string program =
      parts->head + block(tuple(with("of_", parts->results)), parts->body, tuple(parts->values));
  for (const std::string& result : parts->results)
    program += fmt::format("keep kept_{0} = of_{0}\noutput sum_{0} = sum[*](of_{0})\n", result);
  return Wrapped{with_text(c, parts->plain), with_text(c, std::move(program)), parts->results};
}

// What a client has computed, a row of *client, as the value it is.
Tensor row(Tensor kept) {
  kept.shape.erase(kept.shape.begin());
  return kept;
}

Case alone(const Case& c, std::size_t client) {
  Case one = c;
  one.federation.clients = {c.federation.clients[client]};
  return one;
}

// The body of a block is a program over a federation of one; the engine and the definition agree on all of them together.
Verdict a_block_is_a_program(const Case& c) {
  const std::optional<Wrapped> wrapped = wrap(c);
  if (!wrapped) return Verdict::nothing();
  const Compiled plain = compiled(wrapped->plain);
  if (!plain.error.empty()) return plain.error;
  for (const bool optimize : {true, false}) {
    const Compiled block = compiled(wrapped->block, optimize);
    if (!block.error.empty()) return "as a block " + block.error;
    const Outcome got = run_engine(wrapped->block, *block.program);
    const Outcome want = run_reference(wrapped->block, *block.program);
    if (const Verdict broken = compare(got, want, rounding)) return "grouped: " + *broken;
    bool all = true;
    for (std::size_t i = 0; i < c.federation.clients.size(); ++i) {
      const Outcome own = run_reference(alone(wrapped->plain, i), *plain.program);
      all = all && own.report;
      if (!own.report || !got.report) continue;
      for (const std::string& result : wrapped->results) {
        const Verdict broken = compare(row(got.report->results.kept.at("kept_" + result).at(i)),
                                       own.report->results.outputs.at(result), rounding);
        if (broken) return fmt::format("client {}, result {}: {}", i, result, *broken);
      }
    }
    if (all && !got.report) return "alone all clients answer, in a block: " + got.error;
    if (!all && got.report) return "a client cannot answer alone, but in a block it can";
  }
  return std::nullopt;
}

TEST(LocalLaws, EqualsTheGroupedReference) {
  check_law("LocalLaws.EqualsTheGroupedReference", {}, 500, a_block_is_a_program);
}

TEST(LocalLaws, EqualsTheGroupedReferenceOnSmallPrograms) {
  GeneratorOptions options;
  options.statements = 2;
  options.depth = 3;
  options.functions = false;
  check_law("LocalLaws.EqualsTheGroupedReferenceOnSmallPrograms", options, 700,
            a_block_is_a_program);
}

TEST(LocalLaws, EqualsTheGroupedReferenceOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("LocalLaws.EqualsTheGroupedReferenceOnSpecialValues", options, 300,
            a_block_is_a_program);
}

// Where every client has the same records, nothing tells one from another.
Verdict clients_are_alike(const Case& c) {
  const std::optional<Wrapped> wrapped = wrap(c);
  if (!wrapped) return Verdict::nothing();
  Case same = wrapped->block;
  for (Client& client : same.federation.clients) {
    client.arrays = c.federation.clients.front().arrays;
  }
  const Compiled block = compiled(same);
  if (!block.error.empty()) return block.error;
  const Outcome got = run_engine(same, *block.program);
  if (!got.report) return Verdict::nothing();
  for (const auto& [name, parts] : got.report->results.kept) {
    for (const Tensor& part : parts) {
      if (const Verdict broken = same_bits(part, parts.front()))
        return fmt::format("{} of clients with the same records: {}", name, *broken);
    }
  }
  return std::nullopt;
}

TEST(LocalLaws, ClientsWithTheSameRecordsAreAlike) {
  check_law("LocalLaws.ClientsWithTheSameRecordsAreAlike", {}, 300, clients_are_alike);
}

Outcome run_packed(const Case& c, const Compiled& program, std::vector<Pack> packs,
                   const Settings& settings) {
  RunOptions options;
  options.signature = c.options.signature;
  Outcome outcome;
  try {
    outcome.report = run_packs(program.program, std::move(packs), settings, options);
  } catch (const RunError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

// Clients of a simulation that stand together go through a block together: each computes the bits that it would compute
// alone.
Verdict packed_clients_are_apart(const Case& c) {
  const std::optional<Wrapped> wrapped = wrap(c);
  if (!wrapped) return Verdict::nothing();
  const Compiled block = compiled(wrapped->block);
  if (!block.error.empty()) return block.error;
  const ir::Program& program = block.program->plan->program;
  Random random = c.choices();
  const Federation many = deal_again(random, c.program, c.federation, random.between(17, 22));
  std::vector<Pack> packs = pack_clients(program, many.clients);
  if (packs.size() > 2) return fmt::format("{} packs", packs.size());
  const Outcome packed = run_packed(c, block, std::move(packs), many.settings);
  const Outcome apart = run_packed(c, block, keep_apart(program, many.clients), many.settings);
  if (const Verdict broken = compare(packed, apart, rounding)) return broken;
  if (!packed.report) return Verdict::nothing();
  for (const auto& [name, parts] : apart.report->results.kept) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (const Verdict broken = same_bits(packed.report->results.kept.at(name).at(i), parts[i]))
        return fmt::format("{} of client {}: {}", name, i, *broken);
    }
  }
  return std::nullopt;
}

TEST(LocalLaws, PackedClientsComputeTheSameBits) {
  check_law("LocalLaws.PackedClientsComputeTheSameBits", {}, 300, packed_clients_are_apart);
}

TEST(LocalLaws, PackedClientsComputeTheSameBitsWithoutLoops) {
  GeneratorOptions options;
  options.loops = false;
  check_law("LocalLaws.PackedClientsComputeTheSameBitsWithoutLoops", options, 300,
            packed_clients_are_apart);
}

// An input over the bare star, whose records batches are taken of; empty when there is none.
std::string name_of_records(const Case& c) {
  for (const InputSpec& input : c.program.inputs) {
    if (input.type.federated() && input.type.record_set().empty()) return input.name;
  }
  return {};
}

// What the clients of a simulation send and keep by engines with these options, all clients of a pack together.
struct Encoding {
  std::map<std::string, Tensor> outputs;
  std::vector<std::map<std::string, Tensor>> kept;  // by pack
  std::string error;
};
Encoding encode_packs(const CompiledProgram& program, const Federation& federation,
                      const EngineOptions& options) {
  const Plan& plan = *program.plan;
  Encoding result;
  try {
    SizeValues sizes = bind_settings(plan.program, federation.settings);
    const std::vector<Pack> packs = pack_clients(plan.program, federation.clients);
    for (const Pack& pack : packs) sizes = bind_client(plan.program, pack.records, sizes);
    std::vector<Engine> engines;
    for (const Pack& pack : packs) engines.emplace_back(program.plan, sizes, pack.records, options);
    Machine machine(program.plan, sizes, federation.settings);
    while (machine.round() != nullptr) {
      const Round& round = *machine.round();
      std::vector<MergeState> states = engines[0].encode(round, machine.to_send());
      for (std::size_t e = 1; e < engines.size(); ++e) {
        const std::vector<MergeState> more = engines[e].encode(round, machine.to_send());
        for (std::size_t i = 0; i < more.size(); ++i)
          round.merges[i].monoid->merge(states[i], more[i]);
      }
      machine.absorb(states);
    }
    result.outputs = machine.results().outputs;
    for (const Engine& engine : engines) result.kept.push_back(engine.kept());
  } catch (const RunError& error) {
    result.error = error.what();
  }
  return result;
}

// Any program as blocks without loops: over records alone; over states that stay at the clients, in a loop around the block; and,
// where there are records, over what another block has made of them in batches.
std::optional<std::string> in_blocks_without_loops(const Case& c, Random& random) {
  const std::optional<Parts> parts = parts_of(c);
  if (!parts) return std::nullopt;
  std::vector<std::string> next;
  std::string states;
  std::string updates;
  std::string ends;
  const std::string records = name_of_records(c);
  std::string weigh;
  if (!records.empty()) {
    weigh = fmt::format(
        "let weight = each client {{\nstate seen = 0\nrepeat batches({}, {}) {{ "
        "seen <- records({}) - seen / 2 }}\nseen\n}}\nkeep weight\n",
        random.between(1, 200), random.between(0, 1000), records);
  }
  for (std::size_t i = 0; i < parts->results.size(); ++i) {
    const std::string& name = parts->results[i];
    next.push_back(fmt::format("({}) + own_{} / 2{}", parts->values[i], name,
                               records.empty() ? "" : " * weight"));
    states += fmt::format("private state own_{0} = zeros_like(of_{0})\n", name);
    updates += fmt::format("own_{0} <- next_{0}\n", name);
    ends += fmt::format("keep kept_{0} = of_{0}\nkeep state_{0} = own_{0}\n", name);
    ends += fmt::format("output sum_{0} = sum[*](own_{0})\n", name);
  }
  return parts->head +
         block(tuple(with("of_", parts->results)), parts->body, tuple(parts->values)) + weigh +
         states + "repeat 2 {\n" +
         block(tuple(with("next_", parts->results)), parts->body, tuple(next)) + updates + "}\n" +
         ends;
}

// A block without loops runs at many clients at once, and means what it means client by client: the same bits in exact runs.
Verdict at_once_is_one_by_one(const Case& c) {
  Random random = c.choices();
  const std::optional<std::string> text = in_blocks_without_loops(c, random);
  if (!text) return Verdict::nothing();
  // More than one group of them, and now and then more than a block of clients.
  const auto clients =
      static_cast<int>(random.chance(10) ? random.between(500, 540) : random.between(17, 60));
  const Federation many = deal_unevenly(random, c.program, c.federation, clients);
  for (const bool exact : {false, true}) {
    const Compiled program = compiled(with_text(c, *text), true, false, exact);
    if (!program.error.empty()) return program.error;
    EngineOptions options;
    const Encoding got = encode_packs(*program.program, many, options);
    options.at_once = false;
    const Encoding want = encode_packs(*program.program, many, options);
    if (got.error != want.error)
      return fmt::format("at once: {}; one by one: {}", got.error, want.error);
    const auto differ = [&](const std::map<std::string, Tensor>& here,
                            const std::map<std::string, Tensor>& there) -> Verdict {
      for (const auto& [name, value] : there) {
        const Tensor& own = here.at(name);
        const Verdict broken = exact ? same_bits(own, value) : compare(own, value, rounding);
        if (broken) return fmt::format("{}{}: {}", exact ? "exact " : "", name, *broken);
      }
      return std::nullopt;
    };
    if (const Verdict broken = differ(got.outputs, want.outputs)) return broken;
    for (std::size_t i = 0; i < want.kept.size(); ++i) {
      if (const Verdict broken = differ(got.kept[i], want.kept[i])) return broken;
    }
  }
  return std::nullopt;
}

TEST(LocalLaws, ManyClientsAtOnceAreOneByOne) {
  GeneratorOptions options;
  options.loops = false;
  check_law("LocalLaws.ManyClientsAtOnceAreOneByOne", options, 300, at_once_is_one_by_one);
}

TEST(LocalLaws, ManyClientsAtOnceAreOneByOneOnSpecialValues) {
  GeneratorOptions options;
  options.loops = false;
  options.special = true;
  check_law("LocalLaws.ManyClientsAtOnceAreOneByOneOnSpecialValues", options, 300,
            at_once_is_one_by_one);
}

// 24 clients with records x : [*, 3], y : [*] and a number scale : [*client]: one of them has no records, one has records in
// several blocks.
std::vector<Client> uneven_clients() {
  Random random(7);
  std::vector<Client> clients(24);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::int64_t records = i == 3 ? 0 : i == 5 ? 600 : random.between(1, 40);
    clients[i].name = fmt::format("c{}", i);
    const auto drawn = [&](Shape shape) {
      Tensor tensor(std::move(shape));
      for (double& value : tensor.data) value = random.between(-1000, 1000) / 1000.0;
      return tensor;
    };
    clients[i].arrays = {
        {"x", drawn({records, 3})}, {"y", drawn({records})}, {"scale", drawn({1})}};
  }
  return clients;
}

// Clients that stand together compute what each computes alone; to the bit where `bits` says so.
void expect_packed_as_apart(const std::string& text, bool exact, bool bits) {
  ProgramOptions options;
  options.planning.exact = exact;
  const auto program = compile_program({"test.fold", text, {}}, options);
  ASSERT_TRUE(program->plan);
  const std::vector<Client> clients = uneven_clients();
  const ir::Program& typed = program->plan->program;
  std::vector<Pack> packs = pack_clients(typed, clients);
  EXPECT_LT(packs.size(), 4U);
  const RunReport packed = run_packs(program, std::move(packs), {});
  const RunReport apart = run_packs(program, keep_apart(typed, clients), {});
  EXPECT_GE(packed.packed, 23);
  for (const auto& [name, parts] : apart.results.kept) {
    ASSERT_EQ(packed.results.kept.at(name).size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Tensor& own = packed.results.kept.at(name)[i];
      EXPECT_EQ(bits ? same_bits(own, parts[i]) : compare(own, parts[i], rounding), std::nullopt)
          << name << " of " << i;
    }
  }
  for (const auto& [name, value] : apart.results.outputs)
    EXPECT_EQ(compare(packed.results.outputs.at(name), value, exact ? 0 : rounding), std::nullopt)
        << name;
}

// The same where states stay at clients, with batches, a row per client, loops that end by themselves, clients without
// records and clients of several blocks.
TEST(LocalLaws, PackedClientsKeepTheirStates) {
  expect_packed_as_apart(R"(
input x : [*, p]
input y : [*]
input scale : [*client]
state theta : [p] = zeros(p)
private state own : [*client, p] = zeros(p)
private state old : [*] = 0
state turn = 0
repeat 3 {
  let (local, next, fitted) = each client {
    state b = theta
    repeat batches(100, turn) {
      let g = x' @ (x @ b - y) / records(x)
      b <- b - 0.1 * scale * g
    }
    state c = b
    repeat 20 {
      let step = solve(x' @ x + eye(p), x' @ (x @ c - y))
      c <- c - step
    } until max(abs(step)) < 1e-8
    (b, own + c, x @ c - mean[*](y))
  }
  theta <- mean[*](local) + mean[*](next) / 10
  own <- next
  old <- fitted + old / 2
  turn <- turn + 1
}
output theta
output spread = sum[*](square(old))
keep own
keep old
)",
                         false, false);
}

// The same in a block without loops: several rounds, rows and states of clients, an operation that is no map, results with
// records, results that are the same everywhere.
TEST(LocalLaws, PackedClientsKeepTheirStatesWithoutLoops) {
  for (const bool exact : {false, true}) {
    expect_packed_as_apart(R"(
input x : [*, p]
input y : [*]
input scale : [*client]
state theta : [p] = zeros(p)
private state own : [*client, p] = zeros(p)
private state old : [*] = 0
repeat 3 {
  let (next, n, fitted, same, none) = each client {
    let centre = scale * sum[*](y) / (1 + records(y))
    let spread = sum[*](square(y - centre))
    let step = solve(x' @ x + eye(p), x' @ (x @ theta - y) + own)
    (own / 2 + softmax[1](exp(-step / (1 + spread))), records(x), x @ step - centre + old, theta, exp(scale))
  }
  theta <- mean[*](next) + mean[*](same) / 10
  own <- next * none[:, new] * tanh(n)[:, new]
  old <- fitted / 2
}
output theta
output spread = sum[*](square(old))
keep own
keep old
)",
                           exact, exact);
  }
}

// A private state goes on where it was, at its client and for it alone: after three iterations of own <- own / 2 + v it is
// 1.75 v, where v is what the client computes in a block that also sees its own state.
Verdict private_states_stay(const Case& c) {
  const std::optional<Parts> parts = parts_of(c);
  if (!parts) return Verdict::nothing();
  std::vector<std::string> next;
  std::string states;
  std::string updates;
  std::string ends;
  for (std::size_t i = 0; i < parts->results.size(); ++i) {
    const std::string& name = parts->results[i];
    next.push_back(fmt::format("({}) + own_{} / 2", parts->values[i], name));
    states += fmt::format("private state own_{0} = zeros_like(of_{0})\n", name);
    updates += fmt::format("own_{0} <- next_{0}\n", name);
    ends += fmt::format("keep kept_{0} = of_{0}\nkeep state_{0} = own_{0}\n", name);
    ends += fmt::format("output sum_{0} = sum[*](own_{0})\n", name);
  }
  const std::string once =
      block(tuple(with("of_", parts->results)), parts->body, tuple(parts->values));
  const std::string again = block(tuple(with("next_", parts->results)), parts->body, tuple(next));
  const Case looped =
      with_text(c, parts->head + once + states + "repeat 3 {\n" + again + updates + "}\n" + ends);
  const Compiled program = compiled(looped);
  if (!program.error.empty()) return program.error;
  const Outcome got = run_engine(looped, *program.program);
  const Outcome want = run_reference(looped, *program.program);
  if (const Verdict broken = compare(got, want, rounding)) return "grouped: " + *broken;
  if (!got.report) return Verdict::nothing();
  for (const std::string& name : parts->results) {
    const std::vector<Tensor>& of_clients = got.report->results.kept.at("state_" + name);
    for (std::size_t i = 0; i < of_clients.size(); ++i) {
      Tensor expected = got.report->results.kept.at("kept_" + name).at(i);
      for (double& value : expected.data) value += (value + value / 2) / 2;
      if (const Verdict broken = compare(of_clients[i], expected, rounding))
        return fmt::format("client {}, state {}: {}", i, name, *broken);
    }
  }
  return std::nullopt;
}

TEST(LocalLaws, PrivateStatesStay) {
  check_law("LocalLaws.PrivateStatesStay", {}, 300, private_states_stay);
}

// Blocks and states are conservative: beside a program they change nothing that it gives out, nor what leaves for it. And what
// only stays sends nothing, however many iterations it takes.
Verdict blocks_beside_a_program(const Case& c) {
  const std::optional<Parts> parts = parts_of(c);
  if (!parts) return Verdict::nothing();
  const std::vector<std::string> names = with("beside_", parts->results);
  std::string states;
  std::string updates;
  std::string keeps;
  for (const std::string& name : names) {
    states += fmt::format("private state own_{0} = zeros_like({0})\n", name);
    updates += fmt::format("own_{0} <- own_{0} / 2 + {0}\n", name);
    keeps += fmt::format("keep own_{0}\n", name);
  }
  const std::string beside = block(tuple(names), parts->body, tuple(parts->values)) + states +
                             "repeat 2 {\n" + updates + "}\n" + keeps;
  for (const bool exact : {false, true}) {
    const Case plain = with_text(c, parts->plain);
    const Case both = with_text(c, parts->plain + beside);
    const Case stays = with_text(c, parts->head + beside);
    const Compiled of_plain = compiled(plain, true, false, exact);
    const Compiled of_both = compiled(both, true, false, exact);
    const Compiled of_stays = compiled(stays, true, false, exact);
    for (const Compiled* which : {&of_plain, &of_both, &of_stays}) {
      if (!which->error.empty()) return which->error;
    }
    const Outcome want = run_engine(plain, *of_plain.program);
    const Outcome got = run_engine(both, *of_both.program);
    if (!want.report && got.report) return "beside a block a program answers that cannot";
    if (!got.report) continue;  // a client may have no answer of its own
    for (const auto& [name, value] : want.report->results.outputs) {
      const Tensor& own = got.report->results.outputs.at(name);
      const Verdict broken = exact ? same_bits(own, value) : compare(own, value, rounding);
      if (broken) return fmt::format("{}{}: {}", exact ? "exact " : "", name, *broken);
    }
    const Outcome alone = run_engine(stays, *of_stays.program);
    if (!alone.report) return "states alone: " + alone.error;
    for (std::size_t i = 0; i < want.report->clients.size(); ++i) {
      if (got.report->clients[i].numbers_sent != want.report->clients[i].numbers_sent)
        return fmt::format("{} numbers left beside a block, {} without it",
                           got.report->clients[i].numbers_sent,
                           want.report->clients[i].numbers_sent);
      if (alone.report->clients[i].numbers_sent != 0) return "numbers left for what stays";
    }
  }
  return std::nullopt;
}

TEST(LocalLaws, BlocksBesideAProgramChangeNothingOfIt) {
  check_law("LocalLaws.BlocksBesideAProgramChangeNothingOfIt", {}, 300, blocks_beside_a_program);
}

// A pass over batches takes every record once, in parts of so many and a last one that may be smaller. One batch of all is
// the program itself; without records there is no pass.
Verdict batches_are_a_pass(const Case& c) {
  const std::optional<Parts> parts = parts_of(c);
  const std::string records = name_of_records(c);
  if (!parts || records.empty()) return Verdict::nothing();
  Random random = c.choices();
  const std::int64_t size = random.chance(50) ? random.between(1, 7) : max_records * 30;
  std::string states;
  std::string updates;
  std::vector<std::string> names = with("last_", parts->results);
  std::vector<std::string> values = names;
  for (std::size_t i = 0; i < parts->results.size(); ++i) {
    states += fmt::format("state last_{} = zeros_like({})\n", parts->results[i], parts->values[i]);
    updates += fmt::format("last_{} <- {}\n", parts->results[i], parts->values[i]);
  }
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"seen", fmt::format("seen + records({})", records)},
        {"batch_count", "batch_count + 1"}}) {
    states += fmt::format("state {} = 0\n", name);
    updates += fmt::format("{} <- {}\n", name, value);
    names.push_back("of_" + name);
    values.push_back(name);
  }
  const std::string pass = fmt::format("repeat batches({}, {}) {{\n{}{}}}\n", size,
                                       random.between(0, 1000), parts->body, updates);
  std::string program =
      parts->head + block(tuple(with("of_", parts->results)), parts->body, tuple(parts->values)) +
      block(tuple(names), parts->body + states + pass, tuple(values));
  for (const std::string& name : with("of_", parts->results))
    program += fmt::format("keep kept_{0} = {0}\n", name);
  for (const std::string& name : names)
    program += fmt::format("keep kept_{0} = {0}\noutput sum_{0} = sum[*]({0})\n", name);
  const Case passed = with_text(c, program);
  const Compiled done = compiled(passed);
  if (!done.error.empty()) return done.error;
  const Outcome got = run_engine(passed, *done.program);
  const Outcome want = run_reference(passed, *done.program);
  if (const Verdict broken = compare(got, want, rounding)) return "grouped: " + *broken;
  if (!got.report) return Verdict::nothing();
  const auto kept = [&](const std::string& name, std::size_t client) {
    return got.report->results.kept.at("kept_" + name).at(client);
  };
  for (std::size_t i = 0; i < c.federation.clients.size(); ++i) {
    const double count = static_cast<double>(
        record_counts(done.program->plan->program, c.federation.clients[i]).at(""));
    if (kept("of_seen", i).item() != count) return fmt::format("client {} did not see all", i);
    if (kept("of_batch_count", i).item() != std::ceil(count / static_cast<double>(size)))
      return fmt::format("client {} had {} batches", i, kept("of_batch_count", i).item());
    if (count == 0 || count > static_cast<double>(size)) continue;
    for (const std::string& name : parts->results) {
      if (const Verdict broken = compare(kept("last_" + name, i), kept("of_" + name, i), rounding))
        return fmt::format("client {}, one batch, result {}: {}", i, name, *broken);
    }
  }
  return std::nullopt;
}

TEST(LocalLaws, BatchesAreAPass) {
  check_law("LocalLaws.BatchesAreAPass", {}, 300, batches_are_a_pass);
}

// What a client computes does not change, to the bit, when the others' records do, or when there are no others.
Verdict reads_its_client_alone(const Case& c) {
  const std::optional<Wrapped> wrapped = wrap(c);
  if (!wrapped || c.federation.clients.size() < 2) return Verdict::nothing();
  const Compiled block = compiled(wrapped->block);
  if (!block.error.empty()) return block.error;
  const Outcome all = run_engine(wrapped->block, *block.program);
  const Outcome one = run_engine(alone(wrapped->block, 0), *block.program);
  if (!all.report || !one.report) return Verdict::nothing();
  for (const auto& [name, parts] : one.report->results.kept) {
    if (const Verdict broken = same_bits(all.report->results.kept.at(name).front(), parts.front()))
      return fmt::format("{} with others: {}", name, *broken);
  }
  return std::nullopt;
}

TEST(LocalLaws, ABlockReadsItsClientAlone) {
  check_law("LocalLaws.ABlockReadsItsClientAlone", {}, 300, reads_its_client_alone);
}

// A block adds no round, gives out nothing shared, and every number that leaves is a fold that is announced.
Verdict only_folds_let_out(const Case& c) {
  const std::optional<Wrapped> wrapped = wrap(c);
  if (!wrapped) return Verdict::nothing();
  const Compiled block = compiled(wrapped->block);
  if (!block.error.empty()) return block.error;
  const Plan& plan = *block.program->plan;
  if (plan.rounds != 1) return fmt::format("{} rounds for one block", plan.rounds);
  for (ir::NodeId id = 0; id < plan.program.graph.size(); ++id) {
    const ir::Node& node = plan.program.graph[id];
    if (node.block && !node.federated()) return "a block gives out something shared";
  }
  for (const Merge& merge : rounds_of(plan).front()->merges) {
    if (!ir::is_fold(plan.program.graph, plan.program.graph[merge.fold]))
      return "something leaves that is no fold";
  }
  const Outcome got = run_engine(wrapped->block, *block.program);
  if (!got.report) return Verdict::nothing();
  std::int64_t announced = 0;
  for (const Merge& merge : rounds_of(plan).front()->merges) {
    const std::optional<Size> size = state_size(plan, merge);
    announced += size ? size->evaluate(got.report->sizes).value_or(-1) : -1;
  }
  for (const ClientReport& client : got.report->clients) {
    if (client.numbers_sent != announced)
      return fmt::format("{} numbers left, {} were announced", client.numbers_sent, announced);
  }
  return std::nullopt;
}

TEST(LocalLaws, OnlyFoldsLetOut) {
  check_law("LocalLaws.OnlyFoldsLetOut", {}, 300, only_folds_let_out);
}

// The derivative of a sum over clients is the sum of what each client's own program says.
Verdict derivatives_through_blocks(const Case& c) {
  if (c.program.derivatives.empty()) return Verdict::nothing();
  std::optional<Wrapped> wrapped = wrap(c);
  if (!wrapped || has_no_derivative(wrapped->plain)) return Verdict::nothing();
  std::vector<Derivative> tried;
  for (const Derivative& derivative : c.program.derivatives) {
    const auto& results = wrapped->results;
    if (std::find(results.begin(), results.end(), derivative.of) == results.end()) continue;
    const std::size_t equal = derivative.statement.find("= ");
    const std::size_t open = derivative.statement.find('(');
    if (equal == std::string::npos || open == std::string::npos || open < equal) continue;
    const std::string kind = derivative.statement.substr(equal + 2, open - equal - 2);
    if (kind != "grad" && kind != "jacobian") continue;
    wrapped->block.program.text.text +=
        fmt::format("output outside_{0} = {1}(sum[*](of_{2}), {3})\n", derivative.output, kind,
                    derivative.of, derivative.by);
    tried.push_back(derivative);
  }
  if (tried.empty()) return Verdict::nothing();
  if (has_no_derivative(wrapped->block)) return Verdict::nothing();
  const Compiled block = compiled(wrapped->block);
  if (!block.error.empty()) return block.error;
  const Outcome got = run_engine(wrapped->block, *block.program);
  const Outcome want = run_reference(wrapped->block, *block.program);
  if (const Verdict broken = compare(got, want, 1e-7)) return *broken;
  if (!got.report) return Verdict::nothing();
  for (const Derivative& derivative : tried) {
    const Verdict broken =
        compare(want.report->results.outputs.at("outside_" + derivative.output),
                want.report->results.outputs.at("sum_" + derivative.output), 1e-7);
    if (broken) return fmt::format("{}: {}", derivative.statement, *broken);
  }
  return std::nullopt;
}

TEST(LocalLaws, DerivativesThroughBlocks) {
  GeneratorOptions options;
  options.derivatives = true;
  options.loops = false;
  check_law("LocalLaws.DerivativesThroughBlocks", options, 400, derivatives_through_blocks, 0.5);
}

}  // namespace
}  // namespace starfold::laws
