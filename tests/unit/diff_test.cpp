// Derivatives against central differences, rule by rule; and the shapes of what comes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "starfold/ops/standard.h"
#include "starfold/plan/plan.h"
#include "tests/support/derivatives.h"

namespace starfold::testing {
namespace {

// One environment for all expressions: v is what they are differentiated by.
std::string declarations(const std::string& variable_type) {
  return "input x : [*, p]\ninput y : [*]\ninput z : [q, *]\ninput label : [*]\ninput b : [*, p, "
         "q]\n"
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

Forms forms_of(const Type& type, const std::string& e, const std::string& d,
               std::size_t further_axes) {
  if (!type.federated()) return {e, d};
  const std::size_t after = type.rank() - 1 - *type.record_axis();
  const auto weight = [&](std::size_t axes) {
    std::string text = "y";
    for (std::size_t i = 0; i < axes; ++i) text += i == 0 ? "[:, new" : ", new";
    return axes > 0 ? text + "]" : text;
  };
  return {fmt::format("sum[*]({} * {})", weight(after), e),
          fmt::format("sum[*]({} * {})", weight(after + further_axes), d)};
}

void expect_derivatives(const std::string& e, const std::string& variable_type,
                        const Shape& variable) {
  SCOPED_TRACE(e);
  const std::string head = declarations(variable_type) + "let e = " + e + "\n";
  const Type type = type_of(head + "output one = 1\n", "e");
  const World w = world(variable);
  const Forms first = forms_of(type, "e", "jacobian(e, v)", variable.size());
  const std::string text =
      head + "output f = " + first.value + "\noutput j = " + first.derivative + "\n";
  const auto outputs = run_everywhere(text, w);
  expect_near(outputs.at("j"), differences(program_of(text), "f", "v", w), 2e-8, text);
  const bool number = type.is_scalar() || (type.rank() == 1 && type.federated());
  if (!number) return;
  const Forms second = forms_of(type, "e", "hessian(e, v)", 2 * variable.size());
  const std::string again =
      head + "output g = " + forms_of(type, "e", "grad(e, v)", variable.size()).derivative +
      "\noutput h = " + second.derivative + "\n";
  const auto both = run_everywhere(again, w);
  expect_near(both.at("g"), outputs.at("j"), 1e-12, again);
  expect_near(both.at("h"), differences(program_of(again), "g", "v", w), 2e-7, again);
}

// f of a number: shared, per record, record axis last, and folded.
void expect_map(const std::string& f) {
  const auto of = [&](const std::string& operand) {
    std::string text = f;
    for (std::size_t at = text.find('#'); at != std::string::npos;
         at = text.find('#', at + operand.size()))
      text.replace(at, 1, operand);
    return text;
  };
  expect_derivatives(of("v"), "[p]", {3});
  expect_derivatives(of("v"), "[]", {});
  expect_derivatives(of("(x @ v)"), "[p]", {3});
  expect_derivatives(fmt::format("sum[*]({})", of("(x @ v)")), "[p]", {3});
  expect_derivatives(fmt::format("mean[*,1]({})", of("(v * z)")), "[]", {});
}

TEST(Diff, UnaryMaps) {
  for (const auto& op : standard_signature().ops()) {
    if (op->family != Family::unary || op->derivative == nullptr || op->name == "digamma" ||
        op->name == "-" || op->name == "lgamma")
      continue;
    expect_map(op->name + "(#)");
  }
  expect_map("-#");
  expect_map("square(abs(# - 0.7))");
  expect_map("square(relu(# - 0.7))");
}

TEST(Diff, BinaryMaps) {
  for (const char* f :
       {"# + square(#)", "1 - # * 3", "2 * # * sin(#)", "# / (1 + #)", "#^2", "#^3", "#^2.5",
        "#^(-1)", "#^#", "2^#", "min(square(#), sin(#))", "max(square(#), sin(#))",
        "square(mod(3 * #, 0.4 + #))", "atan2(sin(#), #)", "atan2(2, #)",
        "where(# > 0.7, square(#), sin(#))", "clip(square(#), 0.3, 0.8)", "where(#, #^3, 1)",
        "square(clip(0.5, 0.1 * #, 0.3 * #))"}) {
    expect_map(f);
  }
}

TEST(Diff, Broadcasting) {
  for (const char* e :
       {"x * v", "v + x", "b * v[:, new]", "sum[2,3](b * v[:, new])", "sum[*](square(x - v))",
        "v * z[1, :][:, new]", "x / v", "v - y[:, new]", "z * v[1]", "sum(v) * y",
        "sum[1](v[:, new] * v)", "sum[*](exp(y[:, new] * v))"}) {
    expect_derivatives(e, "[p]", {3});
  }
  for (const char* e :
       {"b * v", "sum[2](x[:, :, new] * v)", "v * m + m / v", "sum[1](v) * y[:, new]", "v'"}) {
    expect_derivatives(e, "[p, q]", {3, 2});
  }
  for (const char* e :
       {"y * v", "sum[*](y * v)", "v * x", "b - v", "records(x) * v^2", "sum[*](v + y * 0)"})
    expect_derivatives(e, "[]", {});
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
  for (const char* e : {"v @ v", "m' @ v", "v @ m", "x @ v", "v @ x'", "y @ (x @ v)",
                        "x' @ exp(x @ v)", "(x @ v) @ y", "z @ sin(x @ v)", "(x' * sin(x @ v)) @ x",
                        "v @ b", "z @ (x * v)", "spd @ diag(v) @ spd"}) {
    expect_derivatives(e, "[p]", {3});
  }
  for (const char* e :
       {"x @ v", "v' @ x'", "v' @ v", "v @ v'", "sum[*](exp(x @ v))", "x' @ tanh(x @ v)",
        "z @ (x @ v)", "b @ v'", "v' @ b", "sum[2,3](square(v' @ b))", "b @ (v' @ spd)",
        "sum[*,2](square(x @ v))", "sum[2](tanh(x @ v) * (x @ m))"}) {
    expect_derivatives(e, "[p, q]", {3, 2});
  }
}

TEST(Diff, Structure) {
  for (const char* e : {"v[2]",
                        "v[2:3]",
                        "v[1:2]",
                        "v[:, new] * m",
                        "x[:, 2] * v[3]",
                        "(x * v)[:, 2]",
                        "(x * v)[:, 1:2]",
                        "(x * v)[:, 2:p]",
                        "v[k]",
                        "concat[1](v, exp(v), [1, 2])",
                        "concat[2](v[1:1], x * v, y[:, new])",
                        "concat[1](v[2:3][:, new], z * v[1:q][:, new])[2, :]",
                        "[v[1], v[2]^2, 1]",
                        "[y * v[1], y]",
                        "[v, 2 * v, v^2]",
                        "reshape(v[:, new] * m, q, p)",
                        "reshape(b * v[:, new], p*q)",
                        "reshape(b * v[:, new], q, p)[:, 2, :]",
                        "reshape(outer(v, v), p*p)",
                        "permute[2,1](outer(v, v))",
                        "permute[3,1,2](b * v[:, new])[2, :, :]",
                        "(x * v)'",
                        "outer(v, sin(v))",
                        "outer(x * v, x)",
                        "outer(v, z')",
                        "v[label]",
                        "exp(v)[label] * y",
                        "outer(v, v)[label]",
                        "sum[*](square(v[label] - y))",
                        "reshape(v, p, 1) * m",
                        "reshape(z * v[1:q][:, new], 1, q)[1, :, :]"}) {
    expect_derivatives(e, "[p]", {3});
  }
  expect_derivatives("v[label]", "[p, q]", {3, 2});
}

TEST(Diff, ClientLocal) {
  for (const char* e :
       {"clip_norm(x * v, 0.9)", "clip_norm(v, 0.9)", "clip_norm(v, 100)", "clip_norm(x @ v, 0.7)",
        "clip_norm(b * v[:, new], v[1])", "softmax[2](x * v)", "log_softmax[2](x * v)",
        "softmax[1](v)", "log_softmax[1](v)", "log_softmax[1](outer(v, v))",
        "softmax[1](v[1:q][:, new] * z)", "sum[*](log_softmax[2](x * v)[:, 2])",
        "sum[2](softmax[2](x * v) * x)", "one_hot(label, p) @ v", "zeros_like(v) + v",
        "sum[*](logsumexp[2](x * v) - (x @ v))"}) {
    expect_derivatives(e, "[p]", {3});
  }
}

TEST(Diff, SharedOnly) {
  for (const char* e : {"full(v[1] * v[2], 2)",
                        "linspace(v[1], v[2]^2, 4)",
                        "cumsum[1](v^2)",
                        "cumsum[2](outer(v, v))",
                        "diag(v)",
                        "diag(outer(v, v^2))",
                        "trace_of(outer(v, v))",
                        "solve(spd, v)",
                        "solve(spd + diag(v), v)",
                        "solve(spd + outer(v, v), outer(v, v^2))",
                        "inv(spd + outer(v, v^2))",
                        "det(spd + outer(v, v^2))",
                        "logdet(spd + outer(v, v^2))",
                        "cholesky(spd + outer(v, v))",
                        "x @ solve(spd + diag(v), v)",
                        "sum[*](exp(x @ solve(spd + diag(v), v)))",
                        "x @ inv(spd + diag(v)) @ v",
                        "sum(cholesky(spd + outer(v, v)))",
                        "normal_cdf(v)",
                        "normal_sf(v)",
                        "normal_quantile(0.6 * v)",
                        "t_cdf(v, 3.5)",
                        "t_sf(v, 2)",
                        "t_quantile(0.6 * v, 4)",
                        "chi2_cdf(v, 3)",
                        "chi2_sf(v, 5)",
                        "f_cdf(v, 3, 6)",
                        "f_sf(v, 2.5, 7)"}) {
    expect_derivatives(e, "[p]", {3});
  }
}

// A per-record value that uses a fold of all records depends on all of them.
TEST(Diff, FoldsInsidePerRecordValues) {
  for (const char* e :
       {"x @ v - mean[*](x @ v)", "(x - mean[*](x * v)) @ v", "log_softmax[1](v)[1] * y",
        "square(x @ v) / sum[*](square(x @ v))", "exp(x @ v - logsumexp[*](x @ v))",
        "(x @ v) * norm[*](x * v)[2]", "x * (x' @ tanh(x @ v))"}) {
    expect_derivatives(e, "[p]", {3});
  }
}

// Shared operations between the variable and a per-record value.
TEST(Diff, SharedPartsOfPerRecordValues) {
  for (const char* e :
       {"x @ cumsum[1](v^2)", "x @ cholesky(spd + outer(v, v))[2]", "y * det(spd + diag(v))",
        "y * logdet(spd + outer(v, v))", "x @ concat[1](v[1:1], exp(v[2:p]))",
        "x @ reshape(outer(v, v), p*p)[1:p]", "x @ diag(outer(v, sin(v)))",
        "y * trace_of(outer(v, v))", "y * max(v)", "x @ where(v > 0.7, v^2, v)",
        "x @ softmax[1](v)", "y * sum([v[2], v[1], 1])", "x @ linspace(v[1], v[2], p)",
        "x @ clip_norm(v, 0.9)", "x @ (m @ (m' @ v))", "y * norm(v)"}) {
    expect_derivatives(e, "[p]", {3});
  }
}

// Several record sets: a fold of one is a shared value to the other.
TEST(Diff, RecordSets) {
  World w = world({3});
  std::mt19937_64 random(7);
  for (std::size_t c = 0; c < w.clients.size(); ++c) {
    const auto visits = static_cast<std::int64_t>(2 * c);
    w.clients[c].arrays["t"] = random_tensor({visits, 3}, random);
  }
  const std::string text =
      declarations("[p]") +
      "input t : [*visits, p]\nlet s = sum[*visits](tanh(t @ v))\nlet e = square(x @ v) * s\n"
      "let whole = sum[*](e) + logsumexp[*visits](t @ v)\noutput f = sum[*](y * e)\n"
      "output g = sum[*](y[:, new] * grad(e, v))\noutput whole\noutput gw = grad(whole, v)\n"
      "output hw = hessian(whole, v)\n";
  const auto outputs = run_everywhere(text, w);
  const ir::Program program = program_of(text);
  expect_near(outputs.at("g"), differences(program, "f", "v", w), 2e-8, text);
  expect_near(outputs.at("gw"), differences(program, "whole", "v", w), 2e-8, text);
  expect_near(outputs.at("hw"), differences(program, "gw", "v", w), 2e-7, text);
}

TEST(Diff, RegisteredPrimitivesHaveNoDerivative) {
  Signature signature = standard_signature();
  signature.add(Signature::ClientLocal{
      "twice", 1, "2 * e",
      [](std::span<const std::vector<Size>> cells) { return std::optional(cells[0]); },
      [](std::span<const Tensor> cells) {
        Tensor result = cells[0];
        for (double& value : result.data) value *= 2;
        return result;
      }});
  CheckOptions options;
  options.signature = &signature;
  const Compilation bad =
      compile("test.fold", "input v : [p]\noutput g = grad(sum(twice(v)), v)\n", options);
  ASSERT_EQ(bad.diagnostics.error_count(), 1u);
  EXPECT_EQ(bad.diagnostics.items()[0].code, Code::NoDerivative);
  EXPECT_TRUE(
      compile("test.fold",
              "input v : [p]\nlet w = stop_gradient(v)\noutput g = grad(sum(twice(w) * v), v)\n",
              options)
          .ok());
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

// --- known formulas

std::string printed(const std::string& text, const std::string& output) {
  const ir::Program program = program_of(text);
  for (const ir::Output& o : program.outputs) {
    if (o.name == output) return ir::print_expr(program, o.node);
  }
  return "";
}

TEST(Diff, ReadsAsPeopleWriteIt) {
  const std::string head =
      "input x : [*, p]\ninput y : [*]\ninput w : [p, q]\ninput t : [*, q]\ninput v : [p]\ninput s "
      ": []\n";
  const auto of = [&](const std::string& e) {
    return printed(head + "output g = " + e + "\n", "g");
  };
  EXPECT_EQ(of("grad(sum[*](softplus(x @ v) - y * (x @ v)), v)"), "x' @ (sigmoid(x @ v) - y)");
  EXPECT_EQ(of("hessian(sum[*](softplus(x @ v) - y * (x @ v)), v)"),
            "x' @ (x * (sigmoid(x @ v) * (1 - sigmoid(x @ v)))[:, new])");
  EXPECT_EQ(of("grad(sum[*](square(y - x @ v)) / 2, v)"), "-(x' @ (y - x @ v))");
  EXPECT_EQ(of("hessian(sum[*](square(y - x @ v)) / 2, v)"), "x' @ x");
  EXPECT_EQ(of("grad(mean[*](square(y - x @ v)), v)"), "-2 / records(x) * (x' @ (y - x @ v))");
  EXPECT_EQ(of("grad(sum[*,2](square(t - x @ w)), w)"), "-2 * (x' @ (t - x @ w))");
  EXPECT_EQ(of("grad(sum[*](exp(s * y)), s)"), "exp(s * y) @ y");
  EXPECT_EQ(of("grad(sum(v), v)"), "ones(p)");
  EXPECT_EQ(of("jacobian(v, v)"), "eye(p)");
  EXPECT_EQ(of("jacobian(exp(v), v)"), "eye(p) * exp(v)");
  EXPECT_EQ(of("jacobian(w' @ v, v)"), "w'");
  EXPECT_EQ(of("sum[*](grad(y * (x @ v), v))"), "sum[*](x * y[:, new])");
  EXPECT_EQ(of("grad(sum(v^2), v)"), "2 * v");
  EXPECT_EQ(of("grad(v @ v, v)"), "2 * v");
}

// --- what it costs

const char* const kLogistic =
    "input x : [*, p]\ninput y : [*]\nstate beta : [p] = zeros(p)\nrepeat 25 {\n"
    "  let eta = x @ beta\n  let loss = softplus(eta) - y * eta\n"
    "  let g = grad(sum[*](loss), beta)\n  let h = hessian(sum[*](loss), beta)\n"
    "  trace loss = sum[*](loss)\n  beta <- beta - solve(h, g)\n}\noutput beta\n";

TEST(DiffCost, LogisticRegression) {
  const Cost cost = cost_of(kLogistic, {{"p", 50}});
  EXPECT_EQ(cost.widest_cell, 50);  // x and one scaled copy of it
  EXPECT_EQ(cost.message, 1 + 50 + 50 * 50);
  EXPECT_EQ(cost.folds, 3);
  EXPECT_EQ(cost.ops.at("sigmoid"), 1);
  EXPECT_EQ(cost.ops.at("softplus"), 1);
  EXPECT_EQ(cost.ops.at("@"), 3);        // eta, gradient, Hessian
  EXPECT_EQ(cost.ops.at("permute"), 1);  // x'
  EXPECT_EQ(cost.ops.at("*"), 3);        // y * eta, s * (1 - s), the scaled copy
  EXPECT_EQ(cost.ops.count("eye"), 0u);
}

TEST(DiffCost, SoftmaxRegression) {
  const Cost cost = cost_of(
      "input x : [*, p]\ninput label : [*]\nsize k = 10\ninput w : [p, k]\nlet eta = x @ w\n"
      "let loss = mean[*](logsumexp[2](eta) - sum[2](one_hot(label, k) * eta))\n"
      "output loss\noutput g = grad(loss, w)\noutput h = hessian(loss, w)\n",
      {{"p", 20}, {"k", 10}});
  EXPECT_EQ(cost.widest_cell, 20 * 10);  // x times the class probabilities, never p * k * k
  EXPECT_EQ(cost.message, 1 + 1 + 20 * 10 + 20 * 20 * 10 + 200 * 200);
  EXPECT_EQ(cost.ops.at("exp"), 1);
  EXPECT_EQ(cost.ops.at("logsumexp"), 1);
  EXPECT_EQ(cost.folds, 5);  // in one round: loss, records, gradient, two parts of the Hessian
}

TEST(DiffCost, TwoLayerNetwork) {
  const Cost cost = cost_of(
      "input x : [*, p]\ninput y : [*]\nsize h = 8\ninput w1 : [p, h]\ninput b1 : [h]\ninput w2 : "
      "[h]\ninput b2 : []\n"
      "let hidden = tanh(x @ w1 + b1)\nlet eta = hidden @ w2 + b2\nlet loss = "
      "mean[*](softplus(eta) - y * eta)\n"
      "output loss\noutput g1 = grad(loss, w1)\noutput c1 = grad(loss, b1)\noutput g2 = grad(loss, "
      "w2)\noutput c2 = grad(loss, b2)\n",
      {{"p", 20}, {"h", 8}});
  EXPECT_EQ(cost.widest_cell, 20);  // x'; everything else has h numbers per record
  EXPECT_EQ(cost.message, 1 + 1 + 20 * 8 + 8 + 8 + 1);
  EXPECT_EQ(cost.ops.at("tanh"), 1);
  EXPECT_EQ(cost.ops.at("sigmoid"), 1);
  EXPECT_EQ(cost.ops.at("@"), 5);  // two forward, three folds
  EXPECT_EQ(cost.ops.at("sum"), 2);
}

// What a user writes as a fold of products is contracted in the same way.
TEST(DiffCost, FoldsOfProducts) {
  const std::string head =
      "input x : [*, p]\ninput t : [*, q]\ninput y : [*]\ninput w : [*]\ninput c : []\ninput v : "
      "[p]\n";
  const SizeValues sizes = {{"p", 30}, {"q", 20}};
  const auto fold = [&](const std::string& e) {
    return cost_of(head + "output s = " + e + "\n", sizes);
  };
  const auto form = [&](const std::string& e) {
    const Plan plan = make_plan(program_of(head + "output s = " + e + "\n"));
    return ir::print_expr(plan.program, plan.program.outputs[0].node);
  };
  EXPECT_EQ(form("sum[*](y[:, new] * x)"), "x' @ y");
  EXPECT_EQ(form("sum[*](x * y[:, new])"), "x' @ y");
  EXPECT_EQ(form("sum[*](y * w)"), "y @ w");
  EXPECT_EQ(form("sum[*](outer(x, t))"), "x' @ t");
  EXPECT_EQ(form("sum[*](x[:, :, new] * t[:, new, :])"), "x' @ t");
  EXPECT_EQ(form("sum[*](w[:, new, new] * outer(x, x))"), "x' @ (x * w[:, new])");
  EXPECT_EQ(form("(x' * w) @ x"), "x' @ (x * w[:, new])");
  EXPECT_EQ(form("x' @ (w[:, new] * x)"), "x' @ (x * w[:, new])");
  EXPECT_EQ(form("sum[*](c * x)"), "sum[*](c * x)");  // c may be infinite
  EXPECT_EQ(form("sum[*](x * v)"), "sum[*](x * v)");
  EXPECT_EQ(form("sum[*](x / c)"), "sum[*](x / c)");
  EXPECT_EQ(form("sum[*](inf * x)"), "sum[*](inf * x)");
  EXPECT_EQ(form("sum[*](-y)"), "-sum[*](y)");
  EXPECT_EQ(form("sum[*](ones_like(x))"), "full(records(x), p)");
  EXPECT_EQ(form("sum[*](sum[2](x * v))"), "sum[*](x @ v)");
  EXPECT_EQ(form("sum[*](sum[2](x * x))"), "sum[*](sum[2](x * x))");
  // What is shared scales an operand, the narrowest that has its axes.
  EXPECT_EQ(form("sum[*](outer(x, x) / c)"), "x' @ (x / c)");
  EXPECT_EQ(form("sum[*](c * outer(x, t))"), "x' @ (c * t)");
  EXPECT_EQ(form("sum[*](w[:, new, new] * outer(x, x) / c)"), "x' @ (x * (w / c)[:, new])");
  EXPECT_EQ(form("sum[*](y[:, new] * x / c)"), "x' @ (y / c)");
  EXPECT_EQ(form("sum[*](outer(t, x) * v)"), "t' @ (x * v)");
  EXPECT_EQ(form("sum[*](outer(x, t) / v[:, new])"), "(x / v)' @ t");
  EXPECT_EQ(form("sum[*](outer(x, x) / (c * v))"), "x' @ (x / c / v)");
  EXPECT_EQ(form("x' @ (x / c)"), "x' @ (x / c)");
  EXPECT_EQ(form("sum[*](outer(x, x) * outer(v, v))"), "(x * v)' @ (x * v)");
  EXPECT_EQ(form("sum[*](outer(x, x) * exp(outer(v, v)))"),
            "sum[*](outer(x, x) * exp(outer(v, v)))");  // no operand has both axes
  for (const char* e :
       {"sum[*](w[:, new, new] * outer(x, t))", "sum[*,2](x * y[:, new])",
        "sum[*](outer(x, x) / c)", "sum[*](c * outer(x, t))",
        "sum[*](outer(x / c, v * x) * (w / c)[:, new, new])", "sum[*](outer(x, t) / v[:, new])"})
    EXPECT_LE(fold(e).widest_cell, 30) << e;
}

// --- kinks, edges, zeros

World nobody() {
  World w;
  w.clients.push_back({"c", {}});
  return w;
}

double derivative_at(const std::string& e, double v) {
  World w = nobody();
  w.settings.shared["v"] = Tensor::scalar(v);
  return run_everywhere("input v : []\noutput g = grad(" + e + ", v)\n", w).at("g").item();
}

TEST(Diff, KinksTakeTheUsualSubgradient) {
  EXPECT_EQ(derivative_at("abs(v)", 0), 0);
  EXPECT_EQ(derivative_at("abs(v)", -2), -1);
  EXPECT_EQ(derivative_at("relu(v)", 0), 0);
  EXPECT_EQ(derivative_at("relu(v)", 1), 1);
  EXPECT_EQ(derivative_at("max(v, 0)", 0), 1);
  EXPECT_EQ(derivative_at("max(0, v)", 0), 0);
  EXPECT_EQ(derivative_at("min(v, 0)", 0), 1);
  EXPECT_EQ(derivative_at("min(0, v)", 0), 0);
  EXPECT_EQ(derivative_at("clip(v, 0, 1)", 0), 1);
  EXPECT_EQ(derivative_at("clip(v, 0, 1)", 1), 1);
  EXPECT_EQ(derivative_at("clip(v, 0, 1)", 1.5), 0);
  EXPECT_EQ(derivative_at("max([v, 1, v])", 1), 1.0 / 3 + 1.0 / 3);
  EXPECT_EQ(derivative_at("norm([v, v])", 0), 0);
  EXPECT_EQ(derivative_at("sqrt(v)", 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(derivative_at("floor(v) + v", 0.5), 1);
  EXPECT_EQ(derivative_at("sqrt(where(v > 0, v, 0))", 0.0), 0);  // not 0 * inf
}

TEST(Diff, PowersAtZero) {
  EXPECT_EQ(derivative_at("v^2", 0), 0);
  EXPECT_EQ(derivative_at("v^3", 0), 0);
  EXPECT_EQ(derivative_at("v^1", 0), 1);
  EXPECT_EQ(derivative_at("v^0", 0), 0);
  EXPECT_EQ(derivative_at("0^v", 2), 0);
  EXPECT_EQ(derivative_at("prod([v, 0, 3])", 5), 0);
  EXPECT_EQ(derivative_at("prod([v, 2, 3])", 0), 6);
  EXPECT_EQ(derivative_at("prod([v, v, 3])", 0), 0);
}

// Names are variables of their own, apart from equal values.
TEST(Diff, EqualValuesAreDifferentVariables) {
  const auto outputs = run_everywhere(
      "let a = 2\nlet b = 2\nlet c = a * b\noutput da = grad(a * b * 2 * c, a)\noutput db = "
      "grad(b^2, b)\n"
      "let d = a * b\noutput dd = grad(square(d) + a * b, d)\nlet s = 2\noutput h = hessian(s^3, "
      "s)\n",
      nobody());
  EXPECT_EQ(outputs.at("da").item(), 32);  // 2 a^2 b^2 ... d/da = 4 a b^2
  EXPECT_EQ(outputs.at("db").item(), 4);
  EXPECT_EQ(outputs.at("dd").item(), 8);
  EXPECT_EQ(outputs.at("h").item(), 12);
}

TEST(Diff, LoopsAndFunctions) {
  World w = world({3});
  const std::string text =
      declarations("[p]") +
      "fn loss(x : [*, n], y : [*], b : [n]) = sum[*](square(y - tanh(x @ b)))\n"
      "fn step(x : [*, n], y : [*], b : [n]) {\n  let l = loss(x, y, b)\n  b - 0.05 * grad(l, "
      "b)\n}\n"
      "state beta = v\nrepeat 5 {\n  let l = loss(x, y, beta)\n  beta <- beta - 0.05 * grad(l, "
      "beta)\n}\n"
      "state other = v\nrepeat 5 {\n  other <- step(x, y, other)\n}\noutput beta\noutput other\n";
  const auto outputs = run_everywhere(text, w);
  expect_near(outputs.at("other"), outputs.at("beta"), 1e-14, text);
}

// thm:gradient-expressibility: the gradient of the sum is the sum of the gradients.
TEST(Diff, PerRecordGradientsSumToTheGradient) {
  const World w = world({3});
  for (const char* loss :
       {"softplus(x @ v) - y * (x @ v)", "square(y - x @ v)", "logsumexp[2](x * v)"}) {
    const std::string text = declarations("[p]") + "let l = " + loss +
                             "\noutput a = grad(sum[*](l), v)\noutput c = sum[*](grad(l, v))\n"
                             "let d = hessian(sum[*](l), v)\noutput d\noutput e = "
                             "sum[*](hessian(l, v))\noutput t = d'\n";
    const auto outputs = run_everywhere(text, w);
    expect_near(outputs.at("a"), outputs.at("c"), 1e-12, text);
    expect_near(outputs.at("d"), outputs.at("e"), 1e-12, text);
    expect_near(outputs.at("t"), outputs.at("d"), 1e-12, text);  // a Hessian is symmetric
  }
}

TEST(Diff, NoRecordsAtAll) {
  World w = world({3});
  w.clients.erase(w.clients.begin());
  w.clients.pop_back();
  const auto outputs =
      run_everywhere(declarations("[p]") + "output g = grad(sum[*](exp(x @ v)), v)\n", w);
  for (const double value : outputs.at("g").data) EXPECT_EQ(value, 0);
}

TEST(Diff, GrowthIsBounded) {
  std::string text = "input v : []\nlet f0 = sin(v * exp(v)) * tanh(v) / (1 + v^2)\n";
  for (int i = 1; i <= 40; ++i) text += fmt::format("let f{} = grad(f{}, v)\n", i, i - 1);
  const Compilation compilation = compile("test.fold", text + "output f40\n");
  ASSERT_EQ(compilation.diagnostics.error_count(), 1u);
  EXPECT_EQ(compilation.diagnostics.items()[0].code, Code::DerivativeTooLarge);
}

}  // namespace
}  // namespace starfold::testing
