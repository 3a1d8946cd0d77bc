// The hash of a plan: everything that changes a result changes it, and nothing else does.
#include <gtest/gtest.h>

#include <map>

#include "starfold/federation/program.h"

namespace starfold::testing {
namespace {

std::string hash_of(const std::string& text) {
  const auto program = compile_program({"test.fold", text, {}});
  EXPECT_NE(program->plan, nullptr) << text;
  return program->hash;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

const std::string kProgram = R"(size k = 3
input x : [*, p]
input y : [*]
input w : [p] = ones(p)
input ridge : [] = 0.5
state b : [p] = zeros(p)
repeat 7 {
  let g = x' @ (x @ b - y) * w + ridge * b
  trace gap = norm(g)
  b <- b - 0.1 * g
} until norm(g) < 1e-6
let top = reshape(normal(1, 2, k), k, 2)[1:2, 2]
output b
output n = sum[2](max[*](x)[new, :])
output t = top
)";

TEST(PlanHash, ChangesWithEverythingThatChangesAResult) {
  std::map<std::string, std::string> seen = {{hash_of(kProgram), "itself"}};
  const std::pair<const char*, const char*> changes[] = {
      {"size k = 3", "size k = 4"},                      // a declared size
      {"= ones(p)", "= zeros(p)"},                       // a default that is computed
      {"= ones(p)", ""},                                 // no default
      {"ridge : [] = 0.5", "ridge : [] = 0.25"},         // a default that is a number
      {"ridge : [] = 0.5", "ridge : []"},                //
      {"input y : [*]", "input y : [*]\ninput z : []"},  // another input that must be given
      {"state b : [p] = zeros(p)", "state b : [p] = ones(p)"},
      {"repeat 7", "repeat 8"},
      {"repeat 7", "repeat k"},
      {" until norm(g) < 1e-6", ""},
      {"1e-6", "1e-7"},
      {"norm(g) < 1e-6", "norm(g) <= 1e-6"},
      {"trace gap = norm(g)", "trace gap = max(abs(g))"},
      {"trace gap", "trace length"},
      {"  trace gap = norm(g)\n", ""},
      {"0.1 * g", "0.2 * g"},
      {"ridge * b", "ridge * b * -0.0"},
      {"ridge * b", "ridge * b * 0.0"},
      {"normal(1, 2, k)", "normal(2, 2, k)"},
      {"normal(1, 2, k)", "uniform(1, 2, k)"},
      {"normal(1, 2, k)", "normal(1, k, 2)"},
      {"[1:2, 2]", "[2:3, 2]"},
      {"[1:2, 2]", "[1:2, 1]"},
      {"sum[2]", "sum[1]"},
      {"max[*](x)", "min[*](x)"},
      {"max[*](x)", "max[*](-x)"},
      {"output b\n", ""},
      {"output t = top", "output u = top"},
      {"output t = top", "output t = top + 0 * w[1]"},
      {"input y : [*]", "input v : [*] \nlet y = v"},  // inputs are bound by name
  };
  for (const auto& [from, to] : changes) {
    const std::string text = replaced(kProgram, from, to);
    const auto [other, is_new] = seen.emplace(hash_of(text), text);
    EXPECT_TRUE(is_new) << from << " -> " << to << " hashes like\n" << other->second;
  }
}

TEST(PlanHash, DoesNotChangeWithHowItIsWritten) {
  const std::string hash = hash_of(kProgram);
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash_of("# a comment\n\n" + kProgram), hash);
  EXPECT_EQ(hash_of(replaced(kProgram, "0.1 * g", "(0.10 * g)")), hash);
  std::string renamed = kProgram;
  for (std::size_t at = renamed.find("top"); at != std::string::npos; at = renamed.find("top"))
    renamed.replace(at, 3, "head");
  EXPECT_EQ(hash_of(renamed), hash);
}

// Record sets are part of types.
TEST(PlanHash, KnowsRecordSets) {
  EXPECT_NE(hash_of("input a : [*]\ninput b : [*]\noutput s = sum[*](a) + sum[*](b)\n"),
            hash_of("input a : [*]\ninput b : [*v]\noutput s = sum[*](a) + sum[*](b)\n"));
}

}  // namespace
}  // namespace starfold::testing
