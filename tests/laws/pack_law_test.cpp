// Laws of packing: clients whose records lie in common arrays give the same run, wherever the star is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "starfold/base/error.h"
#include "starfold/runtime/pack.h"
#include "tests/laws/evaluate.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

std::set<std::size_t> stars_packed;  // places of the star in what was packed

// thm:shared-state-factorization: the answer does not depend on the cut of the records, so clients
// may be put together; each of them stays in the report, at its own place.
Verdict packing(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const ir::Program& p = program.program->plan->program;
  Random random = c.choices();
  Case many = c;
  many.federation = deal_again(random, c.program, c.federation, random.between(17, 22));
  const std::vector<Client>& clients = many.federation.clients;
  const std::vector<Pack> packs = pack_clients(p, clients);
  if (packs.size() != 1) return fmt::format("{} packs", packs.size());
  for (const ir::Input& input : p.inputs) {
    if (!input.type.federated()) continue;
    std::vector<Tensor> parts;
    for (const Client& client : clients) parts.push_back(client.arrays.at(input.name));
    const std::size_t axis = *input.type.record_axis();
    if (const Verdict broken =
            same_bits(packs[0].records.arrays.at(input.name), concatenated(parts, axis)))
      return fmt::format("input {} : {}: {}", input.name, input.type.to_string(), *broken);
    if (input.type.rank() == 3) stars_packed.insert(axis);
  }
  std::vector<Pack> apart;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::int64_t records = reported_records(p, clients[i]);
    const PackedClient& packed = packs[0].clients.at(i);
    if (packed.place != i || packed.name != clients[i].name || packed.records != records)
      return fmt::format("client {} is reported as another", i);
    Pack alone;
    alone.records = clients[i];
    alone.clients = {{clients[i].name, records, i}};
    apart.push_back(std::move(alone));
  }
  const auto run = [&](std::vector<Pack> of) {
    RunOptions options;
    options.signature = c.options.signature;
    options.threads = 1;
    Outcome outcome;
    try {
      outcome.report = run_packs(program.program, std::move(of), c.federation.settings, options);
    } catch (const RunError& error) {
      outcome.error = error.what();
    }
    return outcome;
  };
  return compare(run(packs), run(std::move(apart)), rounding);
}

TEST(Laws, PackedClientsGiveTheSameRun) {
  GeneratorOptions options;
  options.statements = 3;
  stars_packed.clear();
  check_law("Laws.PackedClientsGiveTheSameRun", options, 150, packing);
  if (law_programs(150) >= 150) {
    EXPECT_EQ(stars_packed, (std::set<std::size_t>{0, 1, 2}));
  }
}

// Clients whose arrays do not fit each other stay apart, so that whoever runs them can say who is wrong.
TEST(Packing, MisfitsStayApart) {
  const Compilation compilation =
      compile("test.fold", "input x : [2, *]\ninput y : [*]\noutput z = x @ y\n");
  const auto clients = [](const Tensor& odd) {
    std::vector<Client> all(18);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].name = fmt::format("c{}", i);
      all[i].arrays = {{"x", Tensor(Shape{2, 3})}, {"y", Tensor(Shape{3})}};
    }
    all[9].arrays["x"] = odd;
    return all;
  };
  EXPECT_EQ(pack_clients(compilation.program, clients(Tensor(Shape{2, 3}))).size(), 1u);
  EXPECT_EQ(pack_clients(compilation.program, clients(Tensor(Shape{3, 3}))).size(), 18u);
  EXPECT_EQ(pack_clients(compilation.program, clients(Tensor(Shape{2, 3, 1}))).size(), 18u);
  std::vector<Client> sixteen = clients(Tensor(Shape{2, 3}));
  sixteen.resize(16);
  EXPECT_EQ(pack_clients(compilation.program, sixteen).size(), 16u);
}

}  // namespace
}  // namespace starfold::laws
