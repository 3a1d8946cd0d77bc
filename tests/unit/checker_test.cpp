// What golden files cannot hold: bytes that are no text, programs of many thousand lines, and time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>

#include "starfold/compile/compile.h"
#include "starfold/diag/render.h"
#include "starfold/syntax/parser.h"

namespace starfold {
namespace {

Compilation check(std::string text) { return compile("test.fold", std::move(text)); }

// The codes of all diagnostics, in their order.
std::string codes(const Compilation& compiled) {
  std::string text;
  for (const Diagnostic& item : compiled.diagnostics.items()) {
    text += (text.empty() ? "" : " ") + std::string(info(item.code).id);
  }
  return text;
}

std::string repeat(int count, const auto& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::string(line(i)) + "\n";
  return text;
}

double processor_seconds(const auto& action) {
  const std::clock_t start = std::clock();
  action();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Sanitizers and shared machines slow everything down; a hang is still a hang.
constexpr double patience = 20;

// The example of the language reference, to the byte.
TEST(Checker, ContractExample) {
  const Compilation compiled = compile("mean.fold", "input x : [*, p]\n\noutput x\n");
  EXPECT_EQ(render_text(compiled.diagnostics, compiled.sources),
            "error[E0301]: a federated value cannot be an output\n"
            "  --> mean.fold:3:8\n"
            "   |\n"
            " 3 | output x\n"
            "   |        ^ [*, p] is split across clients by its record axis\n"
            "   = help: fold the record axis first, for example: output total = sum[*](x)\n");
}

TEST(Checker, NotText) {
  EXPECT_EQ(codes(check("let a = 1 \xff\n")), "E0102");
  EXPECT_EQ(codes(check(std::string("let a = 1\0\n", 11))), "E0102");
  EXPECT_EQ(codes(check(std::string(max_source_bytes + 1, ' '))), "E0106");
  EXPECT_EQ(codes(check("let a = " + repeat(600'000, [](int) { return "1 +"; }) + "1\n")), "E0106");
}

TEST(Checker, DeepNesting) {
  for (const char* pair : {"()", "[]"}) {
    const std::string text =
        "let a = " + std::string(10'000, pair[0]) + "1" + std::string(10'000, pair[1]);
    EXPECT_EQ(codes(check(text + "\noutput a\n")), "E0105");
  }
  EXPECT_EQ(codes(check("let a = " + std::string(10'000, '-') + "1\noutput a\n")), "E0105");
  EXPECT_EQ(codes(check("state s = 0\n" + repeat(200, [](int) { return "repeat 2 {"; }) +
                        "s <- 1\n" + std::string(200, '}') + "\noutput s\n")),
            "E0105");
}

// Calls of calls multiply; both styles end soon.
TEST(Checker, ExponentialCalls) {
  for (const char* body : {"f{0}(f{0}(a))", "f{0}(a) + f{0}(a)", "f{0}([a, a][1] + f{0}(a))"}) {
    const std::string text =
        "fn f0(a : []) = a + 1\n" + repeat(60, [&](int i) {
          return fmt::format("fn f{}(a : []) = ", i + 1) + fmt::format(fmt::runtime(body), i);
        });
    const double seconds =
        processor_seconds([&] { EXPECT_EQ(codes(check(text + "output a = f60(1)\n")), "E0701"); });
    EXPECT_LT(seconds, patience);
  }
}

// A long chain of calls is deep on the stack, more so with an expression around each.
TEST(Checker, DeepCalls) {
  std::string open;
  for (int i = 0; i < 200; ++i) open += "-(";
  const std::string close(200, ')');
  const std::string text =
      "fn f0(a : []) = a\n" + repeat(300, [&](int i) {
        return fmt::format("fn f{}(a : []) = {}f{}(a){}", i + 1, open, i, close);
      });
  EXPECT_EQ(codes(check(text + "output a = f300(1)\n")), "E0701");
}

TEST(Checker, ThousandsOfErrors) {
  const Compilation unknown =
      check(repeat(20'000, [](int i) { return fmt::format("output o{} = x{}", i, i); }));
  EXPECT_EQ(unknown.diagnostics.items().size(), Diagnostics::limit);
  EXPECT_GT(unknown.diagnostics.dropped(), 0u);
  // Errors are kept where warnings are not.
  const Compilation mixed =
      check(repeat(500, [](int i) { return fmt::format("let a{} = 1", i); }) + "output z = q\n");
  EXPECT_EQ(mixed.diagnostics.items().size(), Diagnostics::limit);
  EXPECT_EQ(info(mixed.diagnostics.items().back().code).id, "E0201");
}

// Names alike are looked for among many, and that takes time.
TEST(Checker, ManySimilarNames) {
  const std::string common = "a_name_that_is_rather_long_and_like_the_others_";
  const std::string text =
      repeat(5'000, [&](int i) { return fmt::format("let {}{:05} = 1", common, i); }) +
      repeat(5'000, [&](int i) { return fmt::format("output o{} = {}x{:05}", i, common, i); });
  EXPECT_LT(processor_seconds([&] { EXPECT_FALSE(check(text).ok()); }), patience);
}

TEST(Checker, HugeSizes) {
  EXPECT_EQ(codes(check("input x : [(a+b+c+d+e+f+g+h)^16]\noutput x\n")), "E0408");
  EXPECT_EQ(codes(check("input x : [a^16 * b^16]\noutput x\n")), "E0408");
  EXPECT_EQ(codes(check("input y : [4503599627370496 * 1500]\noutput z = concat[1](y, y)\n")),
            "E0409");
  EXPECT_EQ(codes(check("output x = sum[1e300](zeros(3))\n")), "E0404");
  EXPECT_EQ(codes(check("output x = [1, 2][1e300]\n")), "E0408");
  const std::string wide = "input x : [(a+b+c+d)^4, (a+b)^16]\n" + repeat(5'000, [](int i) {
                             return fmt::format("output y{} = x * {}", i, i);
                           });
  EXPECT_LT(processor_seconds([&] { EXPECT_TRUE(check(wide).ok()); }), patience);
}

TEST(Checker, LongNames) {
  const std::string name(1'000'000, 'n');
  EXPECT_EQ(codes(check("let " + name + " = 1\noutput a = " + name + "\n")), "E0111 E0111");
}

// Twice the program, twice the time.
TEST(Checker, LinearTime) {
  const auto program = [](int statements) {
    return "input x : [*, p]\nlet a0 = sum[*](x)\n" + repeat(statements, [](int i) {
             return i % 4 == 3 ? fmt::format("output o{} = mean[*](x * a{})", i + 1, i / 4 * 3)
                               : fmt::format("let a{} = a{} * 2 + x[:, 1] @ x",
                                             i / 4 * 3 + i % 4 + 1, i / 4 * 3 + i % 4);
           });
  };
  const auto seconds = [&](int statements) {
    const std::string text = program(statements);
    return processor_seconds([&] { EXPECT_TRUE(check(text).ok()); });
  };
  seconds(1'000);  // warm up
  const double one = seconds(10'000);
  const double four = seconds(40'000);
  EXPECT_LT(one, patience / 4);
  EXPECT_LT(four, 12 * one + 0.5);
}

}  // namespace
}  // namespace starfold
