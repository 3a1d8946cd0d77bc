// The engine against the definition: encoders on blocks, merged, equal the fold of the whole.
#include "starfold/runtime/engine/engine.h"

#include "tests/unit/engine_testing.h"

namespace starfold::testing {
namespace {

// The program in every cut: blocks of 1, 3 and 512 records, one and two threads, one and two clients,
// optimized or not, on 0, 1, 5 and 1000 records.
void check_program(const std::string& text, double tolerance = 1e-10) {
  SCOPED_TRACE(text);
  const ir::Program program = program_of(kInputs + text);
  Draws random(7);
  const Settings settings = settings_of(random);
  for (const std::int64_t records : {0, 1, 5, 1000}) {
    const std::vector<Client> clients = {client_of("a", records, random),
                                         client_of("b", 3, random)};
    const Results want = evaluate_reference(program, clients, settings);
    for (const std::int64_t block : {1, 3, 512}) {
      for (const bool optimize : {true, false}) {
        const int threads = optimize ? 1 : 2;
        SCOPED_TRACE(
            fmt::format("{} records in blocks of {} on {} threads", records, block, threads));
        EngineFederation federation(program, clients, settings, {block, threads}, optimize);
        expect_close(federation.run(), want, tolerance);
        if (::testing::Test::HasFailure()) {
          ADD_FAILURE() << federation.print();
          return;
        }
      }
    }
  }
}

// Programs that show all of a federated value by folding it: its sums with weights per record.
std::string shown(const std::string& e, const std::string& weight) {
  return fmt::format(
      "let e = {}\noutput o = sum[*](e * {})\noutput m = max[*](e)\noutput v = var[*](e)\n", e,
      weight);
}

TEST(Engine, UnaryMaps) {
  for (const Op& op : unary_ops()) {
    const std::string call = op.name == "-" ? "-(" : op.name == "not" ? "not (" : op.name + "(";
    const bool positive =
        op.name == "log" || op.name == "log1p" || op.name == "sqrt" || op.name == "digamma";
    check_program(shown(call + (positive ? "abs(x) + 0.1)" : "x)"), "y[:, new]"));
    check_program(shown(call + (positive ? "abs(u) + 0.1)" : "u)"), "y"));
  }
}

TEST(Engine, BinaryMapsAndComparisons) {
  for (const Op& op : binary_ops()) {
    const bool infix = op.surface.find('(') == std::string::npos;
    const auto call = [&](const std::string& a, const std::string& b) {
      return infix ? fmt::format("{} {} {}", a, op.name, b)
                   : fmt::format("{}({}, {})", op.name, a, b);
    };
    const std::string positive = op.name == "^" ? "abs(x)" : "x";
    for (const char* other : {"u'", "b", "y[:, new]", "s", "2", "0.5"}) {
      check_program(shown(call(positive, other), "y[:, new]"), op.name == "^" ? 1e-8 : 1e-10);
    }
    if (op.name == "^") continue;
    check_program(shown(call("b", "x"), "y[:, new]"));
    check_program(shown(call("z", "x"), "y[:, new]"));
    check_program(shown(call("c[:, new, :]", "z"), "y[:, new]"));
    check_program(shown(call("u", "b[:, new]"), "y"));
  }
}

TEST(Engine, Views) {
  check_program(shown("x'", "y"));
  check_program(shown("permute[3, 1, 2](z)", "y"));
  check_program(shown("permute[2, 3, 1](z)", "y[:, new, new]"));
  check_program(shown("x[:, 2]", "y"));
  check_program(shown("x[:, 2:3]", "y[:, new]"));
  check_program(shown("z[2, :, 1:2]", "y[:, new]"));
  check_program(shown("x[:, new, :]", "y[:, new, new]"));
  check_program(shown("reshape(x[:, new, :], p, 1)", "y[:, new, new]"));
  check_program(shown("reshape(permute[1, 3, 2](z), q * p)", "y"));
  check_program(shown("concat[2](ones(1), x)", "y[:, new]"));
  check_program(shown("concat[2](x, b, x[:, 2:3])", "y[:, new]"));
  check_program(shown("concat[1](u, u[2:3, :])", "y"));
  check_program(shown("concat[1](z, c)", "y[:, new]"));
  check_program(shown("[y, 2 * y]", "y"));
  check_program(shown("[x, x * b]", "y[:, new]"));
  check_program(shown("stop_gradient(x)", "y[:, new]"));
  // Two reshapes are one only where the star stays on its side.
  check_program(shown("reshape(reshape(u[1:1, :]), 1)", "y[:, new]"));
  check_program(shown("reshape(reshape(x, 1, p), p)", "y[:, new]"));
  check_program(shown("reshape(reshape(u, 1, p), p)", "y"));
  check_program(shown("zeros_like(x) + ones_like(u)'", "y[:, new]"));
}

TEST(Engine, ClientLocal) {
  check_program(shown("outer(x, u)", "y[:, new, new]"));
  check_program(shown("outer(b, x)", "y[:, new, new]"));
  check_program(shown("outer(u, t)", "y[:, new, new]"));
  check_program(shown("where(x > 0, x, b)", "y[:, new]"));
  check_program(shown("where(y > 0, 1, s)", "y"));
  check_program(shown("where(b > 0, u', x)", "y[:, new]"));
  check_program(shown("clip(x, -0.5, 0.7)", "y[:, new]"));
  check_program(shown("clip(u, b[:, new], y)", "y"));
  check_program(shown("clip_norm(x, 0.5)", "y[:, new]"));
  check_program(shown("clip_norm(z, 1)", "y[:, new]"));
  check_program(shown("clip_norm(one_hot(label, 3), 1)", "y[:, new]"));
  check_program(shown("clip_norm(x * 1e-200, 1e-200)", "y[:, new]"));
  check_program("output o = max[*](norm[2](clip_norm(x, 0.7))) <= 0.7\n");
  check_program(shown("one_hot(label, 3)", "y[:, new]"));
  check_program(shown("one_hot(1 + mod(round(u), 3), 3)", "y[:, new]"));
  check_program(shown("softmax[2](x)", "y[:, new]"));
  check_program(shown("softmax[1](z)", "y[:, new]"));
  check_program(shown("log_softmax[1](u)", "y"));
  check_program(shown("log_softmax[3](z)", "y[:, new]"));
  check_program(shown("t[label]", "y"));
  check_program(shown("table[label]", "y[:, new]"));
  check_program(shown("table[one_hot(label, 3) + 1]", "y[:, new, new]"));
}

TEST(Engine, OrdinaryAxes) {
  for (const char* name : {"sum", "prod", "min", "max", "count", "mean", "var", "std", "logsumexp",
                           "any", "all", "norm", "argmax", "median"}) {
    check_program(shown(fmt::format("{}[2](x)", name), "y"));
    check_program(shown(fmt::format("{}[1](u)", name), "y"));
    check_program(shown(fmt::format("{}[1](z)", name), "y[:, new]"));
    check_program(shown(fmt::format("{}[1, 3](z)", name), "y"));
    check_program(shown(fmt::format("{}[3](x[:, new, :] - c)", name), "y[:, new]"));
  }
  check_program(shown("any[2](x > 1)", "y"));
  check_program(shown("all[2](x > -1)", "y"));
  check_program(shown("quantile[2](x, 0.3)", "y"));
  check_program(shown("quantile[1](u, [0.1, 0.8])", "y[:, new]"));
}

TEST(Engine, FoldsOfTheRecordAxis) {
  for (const char* name : {"sum", "prod", "min", "max", "count", "mean", "var", "std", "logsumexp",
                           "any", "all", "norm"}) {
    for (const char* e : {"[*](x)", "[*](u)", "[*](y)", "[*](z)", "[*, 2](x)", "[1, 2](u)",
                          "[2, 3](z)", "[1, 2](z)", "[1, 2, 3](z)", "[*](exp(x) * b)", "[*](x > 1)",
                          "[*](y[:, new, new] - x[:, new, :])"}) {
      check_program(fmt::format("output o = {}{}\n", name, e));
    }
  }
  check_program("output o = records(z)\noutput o2 = records(exp(y))\n");
}

TEST(Engine, SumsOfProducts) {
  for (const char* e :
       {"x' @ x",
        "u @ x",
        "x' @ y",
        "y @ x",
        "y @ y",
        "u @ u'",
        "x' @ (y[:, new] * x)",
        "(square(y)[:, new] * x)' @ x",
        "u @ (y[:, new] * sigmoid(y)[:, new] * u')",
        "x' @ (x * b)",
        "sum[*](outer(x, x))",
        "sum[*](y[:, new, new] * outer(x, x))",
        "sum[*](outer(x, u) * exp(y)[:, new, new])",
        "sum[*](x[:, :, new] * x[:, new, :])",
        "sum[*](x * u')",
        "sum[*](x * x * y[:, new] * y[:, new])",
        "sum[*](square(x * y[:, new]))",
        "sum[*, 2](x * u')",
        "sum[*](y * y * y)",
        "sum[*](square(square(y)))",
        "sum[*](z * x)",
        "sum[*](z * y[:, new])",
        "sum[*](x[:, 1:2] * x[:, 2:3])",
        "sum[*](x[:, :, new] * x[:, new, :] * exp(-y)[:, new, new] * label[:, new, new])",
        "sum[*](permute[1, 3, 2](outer(x, x * b)))"}) {
    check_program(fmt::format("output o = {}\n", e));
  }
  check_program("output o = permute[1, 3, 2](z) @ x\noutput o2 = permute[1, 3, 2](z) @ y\n");
}

// Sums by label, which make no one_hot, and those that look like them.
TEST(Engine, Groups) {
  for (const char* e :
       {"one_hot(label, 3)' @ x", "one_hot(label, 3)' @ y", "y @ one_hot(label, 3)",
        "u @ one_hot(label, 3)", "one_hot(label, 3)' @ concat[2](x, x, x * y[:, new])",
        "one_hot(label, 4)' @ (x * y[:, new])", "one_hot(1 + mod(round(y), 3), 3)' @ x",
        "one_hot(where(y > 0, label, nan), 3)' @ x",
        "one_hot(label, 3)' @ one_hot(where(label > 1, label - 1, nan), 2)",
        "sum[*](one_hot(label, 3))", "sum[*](one_hot(y * nan, 3))", "mean[*](one_hot(label, 3))",
        "sum[*, 2](one_hot(label, 3))", "sum[*](one_hot(1 + mod(round(u), 3), 3))",
        "one_hot(label, 3)' @ (x / (y > 0)[:, new])", "one_hot(label, 3)' @ log(x)"}) {
    check_program(fmt::format("output o = {}\n", e));
  }
  check_program(
      "let m = one_hot(label, 3)\noutput o = m' @ x\noutput n = sum[*](m)\noutput v = var[*](m)\n");
  const std::string steps =
      EngineFederation(program_of("input x : [*, p]\ninput g : [*]\nlet m = one_hot(g, 4)\n"
                                  "output o = m' @ x\noutput n = sum[*](m)\n"),
                       {{"a", {{"x", Tensor({2, 9})}, {"g", Tensor({2})}}}}, {})
          .print();
  EXPECT_NE(steps.find("groups"), std::string::npos) << steps;
  EXPECT_EQ(steps.find("one_hot"), std::string::npos) << steps;
}

// Labels and indices that point to nothing stop a run, with the count of them over all blocks of the
// client, whichever way the engine takes.
TEST(Engine, LabelsOutside) {
  const std::vector<double> labels = {1, 2, 3, 4, 0, 1.5, kInf, kNan, 2, 5, -1, 3};
  const auto n = static_cast<std::int64_t>(labels.size());
  const std::vector<Client> clients = {
      {"a", {{"g", vec(labels)}, {"y", Tensor({n}, 1.0)}}, nullptr}};
  const std::string head = "input g : [*]\ninput y : [*]\nlet table = [10, 20, 30]\n";
  const auto stops = [&](const std::string& output, const std::string& message) {
    SCOPED_TRACE(output);
    const ir::Program program = program_of(head + "output o = " + output + "\n");
    EXPECT_EQ(run_error_of([&] { evaluate_reference(program, clients, {}); }), message);
    for (const std::int64_t block : {1, 5, 512}) {
      for (const int threads : {1, 3}) {
        EngineOptions options;
        options.block_records = block;
        options.threads = threads;
        EXPECT_EQ(run_error_of([&] { EngineFederation(program, clients, {}, options).run(); }),
                  message);
      }
    }
  };
  const std::string one_hot = "one_hot: 6 labels are not whole numbers from 1 to 3";
  stops("one_hot(g, 3)' @ y", one_hot);
  stops("y @ one_hot(g, 3)", one_hot);
  stops("sum[*](one_hot(g, 3))", one_hot);
  stops("sum[*, 2](one_hot(g, 3))", one_hot);
  stops("max[*](one_hot(g, 3))", one_hot);
  stops("var[*](one_hot(g, 3) * y[:, new])", one_hot);
  stops("one_hot(where(g == 1.5, g, 1), 3)' @ y",
        "one_hot: 1 label is not a whole number from 1 to 3");
  const std::string index = "7 indices of a table of length 3 are not whole numbers from 1 to 3";
  stops("sum[*](table[g])", index);
  stops("max[*](table[g] * y)", index);
  stops("sum[*](table[where(isnan(g), nan, 1)])",
        "1 index of a table of length 3 is not a whole number from 1 to 3");
}

// Squared distances from shared points, in one step.
TEST(Engine, Distances) {
  check_program(shown("sum[3](square(x[:, new, :] - c))", "y[:, new]"));
  check_program(shown("sum[3](square(c - x[:, new, :]))", "y[:, new]"));
  check_program(shown("sum[2](square(x - b))", "y"));
  check_program(shown("sum[1](square(u - b[:, new]))", "y"));
  check_program(shown("sum[2](square(x - s))", "y"));
  check_program(shown("sum[1](square(z - c[:, new, :]))", "y[:, new]"));
  check_program(shown("sum[1, 3](square(z - c[:, new, :]))", "y"));
  check_program(shown("sum[2](square(x - y[:, new]))", "y"));
  check_program(shown("sum[2](square(x[:, :, new] - w))", "y[:, new]"));
  check_program(shown("argmax[2](-sum[3](square(x[:, new, :] - c)))", "y"));
  check_program(shown("argmax[2](-sum[3](square(x[:, new, :] - c / 0)))", "y"));
  check_program(shown("argmax[2](-sum[3](square(log(x)[:, new, :] - c)))", "y"));
  check_program(shown("argmax[2](-sum[3](square(x[:, new, :] - t[:, new])))", "y"));
  check_program(shown("argmax[2, 3](-sum[4](square(x[:, new, new, :] - c[:, new, :])))", "y"));
  check_program(shown("argmax[2](-x)", "y"));
  check_program(shown("argmax[2](-log(x))", "y"));
  check_program("let d = -x\noutput o = sum[*](argmax[2](d))\noutput s = sum[*](d)\n");
  check_program(
      "let d = square(x - b)\noutput o = sum[*](exp(-sum[2](d)))\noutput s = max[*](d)\n");
  const std::string steps =
      EngineFederation(
          program_of("input x : [*, p]\ninput c : [k, p]\n"
                     "output o = max[*](argmax[2](-sum[3](square(x[:, new, :] - c))))\n"),
          {{"a", {{"x", Tensor({2, 9})}}}}, {{{"c", Tensor({3, 9})}}, {}})
          .print();
  EXPECT_NE(steps.find("nearest"), std::string::npos) << steps;
  EXPECT_EQ(steps.find("distances"), std::string::npos) << steps;
}

TEST(Engine, MatrixProducts) {
  check_program(shown("x @ b", "y"));
  check_program(shown("b @ u", "y"));
  check_program(shown("x @ w", "y[:, new]"));
  check_program(shown("w' @ u", "y"));
  check_program(shown("z @ b", "y"));
  check_program(shown("z @ w", "y[:, new]"));
  check_program(shown("x[:, new, :] @ w", "y[:, new, new]"));
  check_program(shown("x[:, new, :] @ outer(x, x)", "y[:, new, new]"));
  check_program(shown("permute[2, 1, 3](z) @ w", "y[:, new, new]"));
  check_program(shown("permute[2, 1, 3](z) @ x[:, :, new]", "y[:, new, new]"));
  check_program(shown("permute[2, 1, 3](z) @ outer(u, x)", "y[:, new, new]"));
  check_program(shown("c @ outer(x, y[:, new])", "y[:, new, new]"));
  check_program(shown("x @ outer(b, t)", "y[:, new]"));
}

TEST(Engine, RoundsAndLoops) {
  check_program("let m = mean[*](x)\nlet d = x - m\noutput v = d' @ d / (records(x) - 1)\n");
  check_program(R"(
state beta : [p] = zeros(p)
repeat 4 {
  let eta = x @ beta
  let mu = sigmoid(eta)
  let g = x' @ (mu - (y > 0))
  let h = x' @ ((mu * (1 - mu))[:, new] * x) + eye(p)
  trace loss = sum[*](softplus(eta) - (y > 0) * eta)
  beta <- beta - solve(h, g)
}
output beta
)",
                1e-8);
  check_program(R"(
state centre : [q, p] = c
repeat 5 {
  let d = sum[3](square(x[:, new, :] - centre))
  let member = one_hot(argmax[2](-d), q)
  let n = sum[*](member)
  centre <- where(n[:, new] > 0, member' @ x / max(n, 1)[:, new], centre)
}
output centre
)");
}

TEST(Engine, SeveralRecordSets) {
  const ir::Program program = program_of(
      "input x : [*a, 2]\ninput y : [*b]\noutput o = sum[*](x) * sum[*](y)\noutput n = "
      "records(y)\n");
  Draws random(3);
  for (const std::int64_t a : {0, 7}) {
    for (const std::int64_t b : {0, 1200}) {
      const Client client{"c", {{"x", random.normal({a, 2})}, {"y", random.normal({b})}}};
      EngineFederation federation(program, {client}, {}, {64, 2});
      expect_close(federation.run(), evaluate_reference(program, {client}, {}), 1e-10);
    }
  }
}

TEST(Engine, NanAndInfinity) {
  const std::string text = kInputs + R"(
output a = sum[*](x)
output b1 = prod[*](x)
output c1 = min[*](x)
output d = max[*](x)
output e = any[*](x)
output f = all[*](x)
output g = var[*](x)
output h = logsumexp[*](x)
output i = x' @ x
output j = max[*](softmax[2](x))
output k = min[*](logsumexp[2](x))
output l = max[*](log_softmax[2](x))
output n = sum[*](isnan(exp(x)))
output q1 = max[*](min[2](x))
output r = sum[*](where(x, 1, 2))
)";
  const ir::Program program = program_of(text);
  Draws random(5);
  const Settings settings = settings_of(random);
  for (const double special : {kNan, kInf, -kInf, 0.0, 1e308, 1e-310}) {
    for (const std::int64_t where : {0, 1, 500, 599}) {
      Client client = client_of("a", 600, random);
      Tensor& x = client.arrays["x"];
      x.data[static_cast<std::size_t>(where * 3 + where % 3)] = special;
      if (where == 500) x.data[1501] = -special;
      const Results want = evaluate_reference(program, {client}, settings);
      for (const std::int64_t block : {1, 512}) {
        SCOPED_TRACE(fmt::format("{} at {} in blocks of {}", special, where, block));
        EngineFederation federation(program, {client}, settings, {block, 1});
        Results got = federation.run();
        // Whether 1e308 overflows depends on the order of the work.
        if (special == 1e308) {
          for (const char* name : {"b1", "g"}) got.outputs[name] = want.outputs.at(name);
        }
        expect_close(got, want, 1e-10);
      }
    }
  }
}

// Blocks are centred at points that stay while they lie among the records: columns that drift away, stand still and then move a
// little, or have squares that no number holds lose no digits.
TEST(Engine, CovariancesOfColumnsThatMove) {
  const ir::Program program =
      program_of("input x : [*, p]\noutput c = cov[*](x)\noutput d = cov[*](x, x)\n");
  constexpr std::size_t records = 3000;
  Draws random(21);
  const Tensor draws = random.normal({records, 5});
  // The last three have blocks that need scales, and then all columns have.
  for (const std::size_t kinds : {5, 8}) {
    Tensor x({records, static_cast<std::int64_t>(kinds)}, 0.0);
    for (std::size_t i = 0; i < records; ++i) {
      const double* draw = draws.data.data() + i * 5;
      const double all[] = {
          draw[0],
          static_cast<double>(i + 1),                   // record numbers
          (i < 700 ? 0 : 1e6) + draw[0] / 2 + draw[1],  // a step
          0.125,                                        // stands still
          i < 1500 ? 1 : 1 + 1e-3 * draw[2],            // and then moves
          1e-150 * (draw[0] + draw[3]),                 // squares vanish
          1e150 * (draw[0] - draw[4]),                  // and overflow
          i < 1024 ? 0 : 1e-80 * draw[0],               // nearly vanish after nothing
      };
      std::copy_n(all, kinds, x.data.data() + i * kinds);
    }
    const std::vector<Client> clients = {{"a", {{"x", x}}}};
    const Results want = evaluate_reference(program, clients, {});
    for (const std::int64_t block : {7, 100, 512}) {
      const Results found = EngineFederation(program, clients, {}, {block, 1}).run();
      for (const char* name : {"c", "d"}) {
        SCOPED_TRACE(std::string(name) + ", blocks of " + std::to_string(block));
        const std::vector<double>& a = found.outputs.at(name).data;
        const std::vector<double>& b = want.outputs.at(name).data;
        for (std::size_t k = 0; k < a.size(); ++k) {
          const double size =
              std::sqrt(b[k / kinds * (kinds + 1)]) * std::sqrt(b[k % kinds * (kinds + 1)]);
          EXPECT_NEAR(size == 0 ? a[k] : a[k] / size, size == 0 ? 0 : b[k] / size, 1e-12) << k;
        }
      }
    }
  }
}

// Squares that are 0, and sums that are, do not mean that a column stands still; equal columns of clients have no variance.
TEST(Engine, CovariancesOfColumnsThatHardlyMove) {
  const ir::Program program = program_of("input x : [*, 3]\noutput c = cov[*](x)\n");
  Tensor x({40, 3}, 1e220 / 3);
  for (std::size_t i = 0; i < 40; ++i) {
    x.data[3 * i] = i % 2 == 0 ? 1e-170 : -1e-170;
    x.data[3 * i + 1] = i % 2 == 0 ? 1 : -1;
  }
  const std::vector<Client> clients = {{"a", {{"x", x}}},
                                       {"b", {{"x", Tensor({7, 3}, 1e220 / 3)}}}};
  const std::vector<double> one =
      EngineFederation(program, {clients[0]}, {}, {8, 1}).run().outputs.at("c").data;
  EXPECT_NEAR(one[1] / 1e-170, 40.0 / 39, 1e-12);
  EXPECT_EQ(EngineFederation(program, clients, {}, {8, 1}).run().outputs.at("c").data[8], 0);
}

}  // namespace
}  // namespace starfold::testing
