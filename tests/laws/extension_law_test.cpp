// Laws of extension: a signature with primitives of a user's own keeps all the others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "starfold/compile/compile.h"
#include "starfold/ops/standard.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using Shapes = std::span<const std::vector<Size>>;
using Tensors = std::span<const Tensor>;
using MaybeShape = std::optional<std::vector<Size>>;

double wave(double x, double frequency) { return std::sin(frequency * x) + 0.1 * x; }

// The maps that both kinds of primitive are made of: a shape from shapes, a tensor from tensors.
struct Map {
  int arity = 1;
  std::function<MaybeShape(Shapes)> shape;
  std::function<Tensor(Tensors)> value;
};

Map random_map(Random& random) {
  const double frequency = random.uniform(0.5, 2);
  switch (random.below(5)) {
    case 0:  // entry by entry
      return {1, [](Shapes s) { return MaybeShape(s[0]); },
              [=](Tensors t) {
                Tensor r = t[0];
                for (double& x : r.data) x = wave(x, frequency);
                return r;
              }};
    case 1:  // one number from all entries
      return {1, [](Shapes) { return MaybeShape(std::vector<Size>{}); },
              [=](Tensors t) {
                double sum = 0;
                for (const double x : t[0].data) sum = 0.5 * sum + wave(x, frequency);
                return Tensor::scalar(sum);
              }};
    case 2:  // the entries backwards, and their opposites behind them
      return {1,
              [](Shapes s) {
                if (s[0].size() != 1) return MaybeShape();
                return MaybeShape(std::vector<Size>{*multiply(s[0][0], 2)});
              },
              [](Tensors t) {
                Tensor r(Shape{2 * t[0].count()},
                         std::vector<double>(t[0].data.rbegin(), t[0].data.rend()));
                for (const double x : t[0].data) r.data.push_back(-x);
                return r;
              }};
    case 3:  // two of one shape
      return {2, [](Shapes s) { return s[0] == s[1] ? MaybeShape(s[0]) : MaybeShape(); },
              [=](Tensors t) {
                Tensor r = t[0];
                for (std::size_t i = 0; i < r.data.size(); ++i)
                  r.data[i] = wave(r.data[i], frequency) - t[1].data[i] / 2;
                return r;
              }};
    default:  // everything times a number
      return {2, [](Shapes s) { return s[1].empty() ? MaybeShape(s[0]) : MaybeShape(); },
              [=](Tensors t) {
                Tensor r = t[0];
                for (double& x : r.data) x *= wave(t[1].item(), frequency);
                return r;
              }};
  }
}

Signature random_signature(std::uint64_t seed) {
  Random random(seed);
  Signature signature = standard_signature();
  for (int i = 0; i < 3; ++i) {
    const Map local = random_map(random);
    signature.add(Signature::ClientLocal{fmt::format("user_local_{}", i), local.arity,
                                         "a map of each record", local.shape, local.value});
    const Map shared = random_map(random);
    signature.add(Signature::SharedOnly{fmt::format("user_shared_{}", i), shared.arity,
                                        "a map of shared values", shared.shape, shared.value});
  }
  return signature;
}

// prop:conservative-signature-extensions: with client-local and shared-only primitives added, the
// three semantic propositions and both factorization theorems still hold.
TEST(Laws, ConservativeExtension) {
  std::vector<Signature> signatures;
  constexpr int many = 8;
  for (int i = 0; i < many; ++i)
    signatures.push_back(random_signature(static_cast<std::uint64_t>(i)));
  int used = 0;
  for (const Signature& signature : signatures) {
    GeneratorOptions options;
    options.signature = &signature;
    options.statements = 4;
    check_law("Laws.ConservativeExtension", options, std::max(1, 1200 / many),
              [&](const Case& c) -> Verdict {
                if (c.program.text.text.find("user_") != std::string::npos) ++used;
                // Each case takes its turn with one of them.
                constexpr Verdict (*laws[])(const Case&) = {
                    client_locality, exposure_discipline, virtual_global_consistency,
                    iterative_factorization, engine_equals_reference};
                return laws[c.seed % std::size(laws)](c);
              });
  }
  EXPECT_GT(used, 0);
}

// No registration opens a way from federated to shared: whatever shape a client-local primitive
// gives, the star is put back; a shared-only one never sees a federated operand.
TEST(Laws, ConservativeExtensionHasNoThirdKind) {
  Signature signature = standard_signature();
  const auto to_number = [](Shapes) { return MaybeShape(std::vector<Size>{}); };
  const auto total = [](Tensors t) {
    double sum = 0;
    for (const double x : t[0].data) sum += x;
    return Tensor::scalar(sum);
  };
  signature.add(Signature::ClientLocal{"leak", 1, "the sum of a record", to_number, total});
  signature.add(Signature::SharedOnly{"total", 1, "the sum of a shared value", to_number, total});
  CheckOptions options;
  options.signature = &signature;
  const auto code = [&](const std::string& text) {
    const Compilation compilation = compile("test.fold", text, options);
    for (const Diagnostic& d : compilation.diagnostics.items()) {
      if (info(d.code).severity == Severity::error) return std::string(info(d.code).id);
    }
    return std::string("accepted");
  };
  EXPECT_EQ(code("input x : [*, p]\noutput y = leak(x)\n"), info(Code::FederatedOutput).id);
  EXPECT_EQ(code("input x : [*]\noutput y = leak(x)\n"), info(Code::FederatedOutput).id);
  EXPECT_EQ(code("input x : [p, *]\nlet y : [*] = leak(x)\noutput z = sum[*](y)\n"), "accepted");
  EXPECT_EQ(code("input x : [*, p]\noutput y = total(x)\n"), info(Code::FederatedArgument).id);
  EXPECT_EQ(code("input x : [*, p]\noutput y = total(sum[*](x))\n"), "accepted");
  EXPECT_THROW(signature.add(Signature::SharedOnly{"sum", 1, "", to_number, total}),
               std::invalid_argument);
  EXPECT_THROW(signature.add(Signature::ClientLocal{"total", 1, "", to_number, total}),
               std::invalid_argument);
}

}  // namespace
}  // namespace starfold::laws
