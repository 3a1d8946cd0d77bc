// Derivatives against central differences, rule by rule; and the shapes of what comes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "starfold/plan/plan.h"
#include "tests/support/derivatives.h"

namespace starfold::testing {
namespace {

// One environment for all expressions: v is what they are differentiated by.
std::string declarations(const std::string& variable_type) {
  return "input x : [*, p]\ninput y : [*]\ninput z : [q, *]\ninput label : [*]\ninput b : [*, p, q]\n"
         "input m : [p, q]\ninput spd : [p, p]\nsize k = 3\ninput v : " +
         variable_type + "\n";
}

World world(const Shape& variable, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  World w;
  for (const std::int64_t records : {3, 0, 4}) {
    Client client;
    client.name = fmt::format("c{}", w.clients.size());
    client.arrays["x"] = random_tensor({records, 3}, random);
    client.arrays["y"] = random_tensor({records}, random, -1, 1);
    client.arrays["z"] = random_tensor({2, records}, random);
    client.arrays["b"] = random_tensor({records, 3, 2}, random);
    Tensor label({records});
    for (double& value : label.data) value = static_cast<double>(random() % 3 + 1);
    client.arrays["label"] = label;
    w.clients.push_back(std::move(client));
  }
  w.settings.shared["m"] = random_tensor({3, 2}, random);
  w.settings.shared["spd"] = Tensor({3, 3}, {4, 1, 0.5, 1, 3, 0.2, 0.5, 0.2, 5});
  w.settings.shared["v"] = random_tensor(variable, random, 0.3, 1.2);
  return w;
}

Type type_of(const std::string& text, const std::string& name) {
  const ir::Program program = program_of(text);
  for (const ir::NameType& row : program.name_types) {
    if (row.name == name) return row.type;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

// The expression in shared form, and its derivative in the same form. Per-record values are
// weighted by y and summed, so that every record's own derivative counts.
struct Forms {
  std::string value;
  std::string derivative;
};

Forms forms_of(const Type& type, const std::string& e, const std::string& d, std::size_t further_axes) {
  if (!type.federated()) return {e, d};
  const std::size_t after = type.rank() - 1 - *type.record_axis();
  const auto weight = [&](std::size_t axes) {
    std::string text = "y";
    for (std::size_t i = 0; i < axes; ++i) text += i == 0 ? "[:, new" : ", new";
    return axes > 0 ? text + "]" : text;
  };
  return {fmt::format("sum[*]({} * {})", weight(after), e), fmt::format("sum[*]({} * {})", weight(after + further_axes), d)};
}

void expect_derivatives(const std::string& e, const std::string& variable_type, const Shape& variable) {
  SCOPED_TRACE(e);
  const std::string head = declarations(variable_type) + "let e = " + e + "\n";
  const Type type = type_of(head + "output one = 1\n", "e");
  const World w = world(variable);
  const Forms first = forms_of(type, "e", "jacobian(e, v)", variable.size());
  const std::string text = head + "output f = " + first.value + "\noutput j = " + first.derivative + "\n";
  const auto outputs = run_everywhere(text, w);
  expect_near(outputs.at("j"), differences(program_of(text), "f", "v", w), 2e-8, text);
  const bool number = type.is_scalar() || (type.rank() == 1 && type.federated());
  if (!number) return;
  const Forms second = forms_of(type, "e", "hessian(e, v)", 2 * variable.size());
  const std::string again = head + "output g = " + forms_of(type, "e", "grad(e, v)", variable.size()).derivative +
                            "\noutput h = " + second.derivative + "\n";
  const auto both = run_everywhere(again, w);
  expect_near(both.at("g"), outputs.at("j"), 1e-12, again);
  expect_near(both.at("h"), differences(program_of(again), "g", "v", w), 2e-7, again);
}

// f of a number: shared, per record, record axis last, and folded.
void expect_map(const std::string& f) {
  const auto of = [&](const std::string& operand) {
    std::string text = f;
    for (std::size_t at = text.find('#'); at != std::string::npos; at = text.find('#', at + operand.size())) text.replace(at, 1, operand);
    return text;
  };
  expect_derivatives(of("v"), "[p]", {3});
  expect_derivatives(of("v"), "[]", {});
  expect_derivatives(of("(x @ v)"), "[p]", {3});
  expect_derivatives(fmt::format("sum[*]({})", of("(x @ v)")), "[p]", {3});
  expect_derivatives(fmt::format("mean[*,1]({})", of("(v * z)")), "[]", {});
}

TEST(Diff, UnaryMaps) {
  for (const auto& op : Signature::standard().ops()) {
    if (op->family != Family::unary || op->derivative == nullptr || op->name == "digamma" || op->name == "-" || op->name == "lgamma") continue;
    expect_map(op->name + "(#)");
  }
  expect_map("-#");
  expect_map("square(abs(# - 0.7))");
  expect_map("square(relu(# - 0.7))");
}

TEST(Diff, BinaryMaps) {
  for (const char* f : {"# + square(#)", "1 - # * 3", "2 * # * sin(#)", "# / (1 + #)", "#^2", "#^3", "#^2.5", "#^(-1)", "#^#", "2^#",
                        "min(square(#), sin(#))", "max(square(#), sin(#))", "square(mod(3 * #, 0.4 + #))", "atan2(sin(#), #)",
                        "atan2(2, #)", "where(# > 0.7, square(#), sin(#))", "clip(square(#), 0.3, 0.8)", "where(#, #^3, 1)",
                        "square(clip(0.5, 0.1 * #, 0.3 * #))"}) {
    expect_map(f);
  }
}

TEST(Diff, Broadcasting) {
  for (const char* e : {"x * v", "v + x", "b * v[:, new]", "sum[2,3](b * v[:, new])", "sum[*](square(x - v))", "v * z[1, :][:, new]",
                        "x / v", "v - y[:, new]", "z * v[1]", "sum(v) * y", "sum[1](v[:, new] * v)", "sum[*](exp(y[:, new] * v))"}) {
    expect_derivatives(e, "[p]", {3});
  }
  for (const char* e : {"b * v", "sum[2](x[:, :, new] * v)", "v * m + m / v", "sum[1](v) * y[:, new]", "v'"}) {
    expect_derivatives(e, "[p, q]", {3, 2});
  }
  for (const char* e : {"y * v", "sum[*](y * v)", "v * x", "b - v", "records(x) * v^2", "sum[*](v + y * 0)"}) expect_derivatives(e, "[]", {});
}

TEST(Diff, Aggregations) {
  for (const char* fold : {"sum", "prod", "mean", "var", "std", "logsumexp", "norm"}) {
    expect_derivatives(fmt::format("{}(sin(v))", fold), "[p]", {3});
    expect_derivatives(fmt::format("{}[1](sin(m * v[:, new]))", fold), "[p]", {3});
    expect_derivatives(fmt::format("{}[2](x * v)", fold), "[p]", {3});
    expect_derivatives(fmt::format("{}[2,3](b * v[:, new])", fold), "[p]", {3});
    expect_derivatives(fmt::format("{}[*](x @ v)", fold), "[p]", {3});
    expect_derivatives(fmt::format("{}[*,2](x * v)", fold), "[p]", {3});
    expect_derivatives(fmt::format("{}[*](sin(z) * v)", fold), "[]", {});
  }
  for (const char* fold : {"min", "max"}) {
    expect_derivatives(fmt::format("{}(sin(v))", fold), "[p]", {3});
    expect_derivatives(fmt::format("square({}[2](x * v))", fold), "[p]", {3});
    expect_derivatives(fmt::format("{}[1](z * v)", fold), "[]", {});
  }
  expect_derivatives("count(v) * v", "[p]", {3});
}

TEST(Diff, MatrixProducts) {
  for (const char* e : {"v @ v", "m' @ v", "v @ m", "x @ v", "v @ x'", "y @ (x @ v)", "x' @ exp(x @ v)", "(x @ v) @ y", "z @ sin(x @ v)",
                        "(x' * sin(x @ v)) @ x", "v @ b", "z @ (x * v)", "spd @ diag(v) @ spd"}) {
    expect_derivatives(e, "[p]", {3});
  }
  for (const char* e : {"x @ v", "v' @ x'", "v' @ v", "v @ v'", "sum[*](exp(x @ v))", "x' @ tanh(x @ v)", "z @ (x @ v)", "b @ v'", "v' @ b",
                        "sum[2,3](square(v' @ b))", "b @ (v' @ spd)", "sum[*,2](square(x @ v))", "sum[2](tanh(x @ v) * (x @ m))"}) {
    expect_derivatives(e, "[p, q]", {3, 2});
  }
}

TEST(Diff, Structure) {
  for (const char* e : {"v[2]", "v[2:3]", "v[1:2]", "v[:, new] * m", "x[:, 2] * v[3]", "(x * v)[:, 2]", "(x * v)[:, 1:2]", "(x * v)[:, 2:p]",
                        "v[k]", "concat[1](v, exp(v), [1, 2])", "concat[2](v[1:1], x * v, y[:, new])", "concat[1](v[2:3][:, new], z * v[1:q][:, new])[2, :]",
                        "[v[1], v[2]^2, 1]", "[y * v[1], y]", "[v, 2 * v, v^2]", "reshape(v[:, new] * m, q, p)", "reshape(b * v[:, new], p*q)",
                        "reshape(b * v[:, new], q, p)[:, 2, :]", "reshape(outer(v, v), p*p)", "permute[2,1](outer(v, v))",
                        "permute[3,1,2](b * v[:, new])[2, :, :]", "(x * v)'", "outer(v, sin(v))", "outer(x * v, x)", "outer(v, z')",
                        "v[label]", "exp(v)[label] * y", "outer(v, v)[label]", "sum[*](square(v[label] - y))", "reshape(v, p, 1) * m",
                        "reshape(z * v[1:q][:, new], 1, q)[1, :, :]"}) {
    expect_derivatives(e, "[p]", {3});
  }
  expect_derivatives("v[label]", "[p, q]", {3, 2});
}

TEST(Diff, ClientLocal) {
  for (const char* e : {"clip_norm(x * v, 0.9)", "clip_norm(v, 0.9)", "clip_norm(v, 100)", "clip_norm(x @ v, 0.7)", "clip_norm(b * v[:, new], v[1])",
                        "softmax[2](x * v)", "log_softmax[2](x * v)", "softmax[1](v)", "log_softmax[1](v)", "log_softmax[1](outer(v, v))",
                        "softmax[1](v[1:q][:, new] * z)", "sum[*](log_softmax[2](x * v)[:, 2])", "sum[2](softmax[2](x * v) * x)",
                        "one_hot(label, p) @ v", "zeros_like(v) + v", "sum[*](logsumexp[2](x * v) - (x @ v))"}) {
    expect_derivatives(e, "[p]", {3});
  }
}

TEST(Diff, SharedOnly) {
  for (const char* e : {"full(v[1] * v[2], 2)", "linspace(v[1], v[2]^2, 4)", "cumsum[1](v^2)", "cumsum[2](outer(v, v))", "diag(v)", "diag(outer(v, v^2))",
                        "trace_of(outer(v, v))", "solve(spd, v)", "solve(spd + diag(v), v)", "solve(spd + outer(v, v), outer(v, v^2))",
                        "inv(spd + outer(v, v^2))", "det(spd + outer(v, v^2))", "logdet(spd + outer(v, v^2))", "cholesky(spd + outer(v, v))",
                        "x @ solve(spd + diag(v), v)", "sum[*](exp(x @ solve(spd + diag(v), v)))", "x @ inv(spd + diag(v)) @ v", "sum(cholesky(spd + outer(v, v)))",
                        "normal_cdf(v)", "normal_sf(v)", "normal_quantile(0.6 * v)", "t_cdf(v, 3.5)", "t_sf(v, 2)", "t_quantile(0.6 * v, 4)", "chi2_cdf(v, 3)",
                        "chi2_sf(v, 5)", "f_cdf(v, 3, 6)", "f_sf(v, 2.5, 7)"}) {
    expect_derivatives(e, "[p]", {3});
  }
}

// A per-record value that uses a fold of all records depends on all of them.
TEST(Diff, FoldsInsidePerRecordValues) {
  for (const char* e : {"x @ v - mean[*](x @ v)", "(x - mean[*](x * v)) @ v", "log_softmax[1](v)[1] * y", "square(x @ v) / sum[*](square(x @ v))",
                        "exp(x @ v - logsumexp[*](x @ v))", "(x @ v) * norm[*](x * v)[2]", "x * (x' @ tanh(x @ v))"}) {
    expect_derivatives(e, "[p]", {3});
  }
}

TEST(Diff, Nested) {
  const World w = world({3});
  const std::string text = declarations("[p]") +
                           "let e = sum[*](exp(0.3 * x @ v)) + sum(v^4)\n"
                           "let g = grad(e, v)\n"
                           "let s = sum(square(g))\n"
                           "output s\noutput gs = grad(s, v)\noutput hs = hessian(s, v)\n"
                           "output again = jacobian(grad(s, v), v)\n";
  const auto outputs = run_everywhere(text, w);
  expect_near(outputs.at("gs"), differences(program_of(text), "s", "v", w), 2e-8, text);
  expect_near(outputs.at("hs"), differences(program_of(text), "gs", "v", w), 2e-7, text);
  expect_near(outputs.at("again"), outputs.at("hs"), 1e-12, text);
}

}  // namespace
}  // namespace starfold::testing
