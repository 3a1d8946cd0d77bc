// The generator itself: everything that a program can say is said often enough to be tested, and
// what is promised about values holds.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "starfold/syntax/parser.h"
#include "tests/laws/coverage.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

// A row of the signature, a typing rule or a form of statement that no generated program uses fails
// the build: a new operation needs a recipe, or a domain, in the generator.
TEST(Generator, CoversTheLanguage) {
  Coverage coverage;
  const auto see = [&](const GeneratorOptions& options, int programs) {
    for (int seed = 0; seed < programs; ++seed) {
      Random random(static_cast<std::uint64_t>(seed));
      Case c;
      c.options = options;
      c.program = generate_program(random, options);
      const Compiled program = compiled(c);
      ASSERT_EQ(program.error, "") << "seed " << seed << "\n" << c.program.text.text;
      coverage.add(program.program->compilation.program);
      SourceMap sources;
      Diagnostics diagnostics;
      coverage.add(parse(sources, sources.add("law.fold", c.program.text.text), diagnostics));
    }
  };
  see({}, 2200);
  GeneratorOptions special;
  special.special = true;
  see(special, 200);
  EXPECT_TRUE(coverage.rare(3).empty()) << fmt::format("{}", fmt::join(coverage.rare(3), "\n"));
}

// Federations of every kind: many clients and one, clients without records and with one, no records at
// all, several record sets of different length, sizes of 1, records with a missing value.
TEST(Generator, CoversFederations) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    GeneratorOptions options;
    options.special = seed % 2 == 1;
    const GeneratedProgram program = generate_program(random, options);
    const Federation federation = generate_federation(random, program);
    std::int64_t records = 0;
    for (const Client& client : federation.clients) {
      std::map<std::string, std::int64_t> counts;
      for (const InputSpec& input : program.inputs) {
        if (!input.type.federated()) continue;
        const Tensor& array = client.arrays.at(input.name);
        counts[input.type.record_set()] = array.shape[*input.type.record_axis()];
        for (const double x : array.data) seen["a missing value"] += std::isnan(x) ? 1 : 0;
      }
      for (const auto& [set, count] : counts) {
        ++seen[count == 0 ? "a client without records" : count == 1 ? "a client with one" : "more"];
        if (count != counts.begin()->second) ++seen["record sets of different length"];
        records += count;
      }
    }
    const std::size_t clients = federation.clients.size();
    ++seen[clients > 16 ? "17 clients and more" : clients == 1 ? "one client" : "a few clients"];
    if (records == 0) ++seen["no records at all"];
    for (const auto& [name, size] : program.sizes) seen["a size of 1"] += size == 1 ? 1 : 0;
  }
  for (const char* what :
       {"a missing value", "a client without records", "a client with one", "17 clients and more",
        "one client", "record sets of different length", "no records at all", "a size of 1"}) {
    EXPECT_GE(seen[what], 10) << what;
  }
}

// The same seed gives the same program and the same data.
TEST(Generator, IsDeterministic) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random a(seed);
    Random b(seed);
    const GeneratedProgram one = generate_program(a);
    const GeneratedProgram two = generate_program(b);
    EXPECT_EQ(one.text, two.text);
    Case x;
    Case y;
    x.federation = generate_federation(a, one);
    y.federation = generate_federation(b, two);
    EXPECT_EQ(show(x), show(y));
  }
}

// Outputs lie where the generator says, as long as every record set has two records.
TEST(Generator, KeepsItsPromises) {
  check_law("Generator.KeepsItsPromises", {}, 500, [](const Case& c) -> Verdict {
    const Compiled program = compiled(c);
    if (!program.error.empty()) return program.error;
    std::map<std::string, std::int64_t> records;
    for (const Client& client : c.federation.clients) {
      for (const auto& [set, count] : record_counts(program.program->compilation.program, client))
        records[set] += count;
    }
    for (const auto& [set, count] : records) {
      if (count < 2) return std::nullopt;
    }
    const Outcome outcome = run_reference(c, *program.program);
    if (!outcome.report) return "it stops: " + outcome.error;
    for (const auto& [name, tensor] : outcome.report->results.outputs) {
      const auto promise = c.program.outputs.find(name);
      if (promise == c.program.outputs.end()) continue;
      const Facts& facts = promise->second;
      for (const double x : tensor.data) {
        const double slack = 1e-6 * (1 + facts.size());
        if (!(x >= facts.lo - slack && x <= facts.hi + slack)) {
          return fmt::format("output {} is {}, promised between {} and {}", name, x, facts.lo,
                             facts.hi);
        }
        if (facts.exact() && std::ldexp(x, facts.grain) != std::floor(std::ldexp(x, facts.grain))) {
          return fmt::format("output {} is {}, promised to be exact", name, x);
        }
      }
    }
    return std::nullopt;
  });
}

}  // namespace
}  // namespace starfold::laws
