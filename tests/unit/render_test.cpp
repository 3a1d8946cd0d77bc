#include "starfold/diag/render.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/syntax.h"

namespace starfold {
namespace {

// A diagnostic about the first occurrence of a piece of the text.
struct Case {
  SourceMap sources;
  Diagnostic diagnostic{Code::FederatedOutput, "message", {}, {}, {}, {}};

  Case(std::string text, std::string_view piece, std::string label,
       std::string name = "mean.fold") {
    sources.add(std::move(name), std::move(text));
    diagnostic.primary = {find(piece), std::move(label)};
  }

  Span find(std::string_view piece, std::uint32_t file = 0) const {
    const auto at = static_cast<std::uint32_t>(sources[file].text().find(piece));
    return {file, at, at + static_cast<std::uint32_t>(piece.size())};
  }

  std::string text() const { return render_text(diagnostic, sources); }
};

TEST(Render, TheExampleOfTheReference) {
  Case c("input x : [*, p]\n\noutput x\n", "", "");
  c.diagnostic.message = "a federated value cannot be an output";
  c.diagnostic.primary = {{0, 25, 26}, "[*, p] is split across clients by its record axis"};
  c.diagnostic.help = "fold the record axis first, for example: output total = sum[*](x)";
  EXPECT_EQ(c.text(),
            "error[E0301]: a federated value cannot be an output\n"
            "  --> mean.fold:3:8\n"
            "   |\n"
            " 3 | output x\n"
            "   |        ^ [*, p] is split across clients by its record axis\n"
            "   = help: fold the record axis first, for example: output total = sum[*](x)\n");
}

TEST(Render, NotesAndWiderLineNumbers) {
  Case c(std::string(99, '\n') + "output abc", "abc", "here");
  c.diagnostic.reason = "the reason";
  c.diagnostic.help = "one\ntwo";
  EXPECT_EQ(c.text(),
            "error[E0301]: message\n"
            "    --> mean.fold:100:8\n"
            "     |\n"
            " 100 | output abc\n"
            "     |        ^^^ here\n"
            "     = note: the reason\n"
            "     = help: one\n"
            "             two\n");
}

TEST(Render, OtherLabels) {
  Case c("let a = 1\nlet b = 2\n\n\nlet c = a + b\n", "+", "sum");
  c.diagnostic.others = {
      {c.find("b = 2"), "second"}, {c.find("c"), "same line"}, {c.find("a = 1"), "first"}};
  EXPECT_EQ(c.text(),
            "error[E0301]: message\n"
            "  --> mean.fold:5:11\n"
            "   |\n"
            " 1 | let a = 1\n"
            "   |     ----- first\n"
            " 2 | let b = 2\n"
            "   |     ----- second\n"
            "...\n"
            " 5 | let c = a + b\n"
            "   |           ^ sum\n"
            "   |     - same line\n");
}

TEST(Render, LabelsInOtherFiles) {
  Case c("let a = f(1)\n", "f(1)", "called here");
  c.sources.add("lib.fold", "\nfn f(x : [p]) = x\n");
  c.diagnostic.others = {{c.find("x : [p]", 1), "a vector"}};
  EXPECT_EQ(c.text(),
            "error[E0301]: message\n"
            "  --> mean.fold:1:9\n"
            "   |\n"
            " 1 | let a = f(1)\n"
            "   |         ^^^^ called here\n"
            "  ::: lib.fold:2:6\n"
            "   |\n"
            " 2 | fn f(x : [p]) = x\n"
            "   |      ------- a vector\n");
}

TEST(Render, SpansOverSeveralLinesAndEmptyOnes) {
  EXPECT_EQ(Case("let a = f(x,\r\n  y)\n", "f(x,\r\n  y)", "all").text(),
            "error[E0301]: message\n"
            "  --> mean.fold:1:9\n"
            "   |\n"
            " 1 | let a = f(x,\n"
            "   |         ^^^^ all\n");
  Case c("let a =\n", "", "missing");
  c.diagnostic.primary.span = {0, 7, 7};
  EXPECT_EQ(c.text(),
            "error[E0301]: message\n"
            "  --> mean.fold:1:8\n"
            "   |\n"
            " 1 | let a =\n"
            "   |        ^ missing\n");
  EXPECT_EQ(Case("", "", "").text(),
            "error[E0301]: message\n  --> mean.fold:1:1\n   |\n 1 |\n   | ^\n");
}

TEST(Render, TabsWideAndUnprintableCharacters) {
  EXPECT_EQ(Case("\tlet é = \x1b b\n", "b", "here").text(),
            "error[E0301]: message\n"
            "  --> mean.fold:1:12\n"
            "   |\n"
            " 1 |     let é = \xEF\xBF\xBD b\n"
            "   |               ^ here\n");
  EXPECT_EQ(Case("a\xff b", "b", "x\ny", "odd\nname").text(),
            "error[E0301]: message\n"
            "  --> odd\xEF\xBF\xBDname:1:4\n"
            "   |\n"
            " 1 | a\xEF\xBF\xBD b\n"
            "   |    ^ x\xEF\xBF\xBDy\n");
}

TEST(Render, LongLinesAreShownThroughAWindow) {
  const std::string left(1000, 'a');
  const std::string right(1000, 'b');
  const std::string text = Case(left + " ! " + right, "!", "here").text();
  EXPECT_EQ(text,
            "error[E0301]: message\n"
            "  --> mean.fold:1:1002\n"
            "   |\n"
            " 1 | …" +
                std::string(39, 'a') + " ! " + std::string(78, 'b') +
                "…\n"
                "   | " +
                std::string(41, ' ') + "^ here\n");
  EXPECT_EQ(Case(right + "!", "!", "end").text(),
            "error[E0301]: message\n"
            "  --> mean.fold:1:1001\n"
            "   |\n"
            " 1 | …" +
                std::string(119, 'b') +
                "!\n"
                "   | " +
                std::string(120, ' ') + "^ end\n");
  Case both("x" + left + "!", "!", "end");
  both.diagnostic.others = {{both.find("x"), "start"}};
  EXPECT_NE(both.text().find(" 1 | x" + std::string(119, 'a') + "…\n   | - start\n"),
            std::string::npos);
}

TEST(Render, HugeLinesAreQuick) {
  const testing::Stopwatch watch;
  for (const char* part : {"x", "\xff", "\x80", "é"}) {
    std::string text;
    while (text.size() < 10'000'000) text += part;
    Case c(text + "!", "!", "here");
    EXPECT_LT(c.text().size(), 2000u);
    c.diagnostic.primary.span = {0, 0, 10'000'000};
    EXPECT_LT(c.text().size(), 2000u);
  }
  EXPECT_LT(watch.seconds(), 2 * testing::seconds_for_hostile_text);
}

TEST(Render, Colour) {
  Case c("output x", "x", "here");
  const std::string text = render_text(c.diagnostic, c.sources, true);
  EXPECT_NE(text.find("\x1b[1;31merror[E0301]\x1b[0m"), std::string::npos);
  EXPECT_NE(text.find("\x1b[1;31m^ here\x1b[0m"), std::string::npos);
  c.diagnostic.code = Code::UnusedLet;
  EXPECT_NE(render_text(c.diagnostic, c.sources, true).find("\x1b[1;33mwarning[W0001]"),
            std::string::npos);
}

TEST(Render, SeveralDiagnosticsWithABlankLineBetween) {
  const testing::ParsedText parsed("let a = )\nlet b = )\n");
  const std::string text = render_text(parsed.diagnostics, parsed.sources);
  EXPECT_EQ(text,
            "error[E0104]: expected an expression, found `)`\n"
            "  --> test.fold:1:9\n"
            "   |\n"
            " 1 | let a = )\n"
            "   |         ^ expected an expression\n"
            "\n"
            "error[E0104]: expected an expression, found `)`\n"
            "  --> test.fold:2:9\n"
            "   |\n"
            " 2 | let b = )\n"
            "   |         ^ expected an expression\n");
}

TEST(Render, WithoutAFile) {
  Diagnostic d{Code::UnknownModule, "message", {}, {}, {}, "help"};
  EXPECT_EQ(render_text(d, SourceMap()), "error[E0209]: message\n   = help: help\n");
}

TEST(Render, Json) {
  const testing::ParsedText parsed("let a = b <-é\n");
  const auto json = render_json(parsed.diagnostics, parsed.sources);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["code"], "E0104");
  EXPECT_EQ(json[0]["severity"], "error");
  EXPECT_EQ(json[0]["message"], "expected an operator or the end of the line, found `<-`");
  EXPECT_EQ(json[0]["line"], 1);
  EXPECT_EQ(json[0]["column"], 11);
  EXPECT_EQ(json[0]["end_line"], 1);
  EXPECT_EQ(json[0]["end_column"], 13);
  EXPECT_FALSE(json[0].contains("file"));  // the program itself; a module is named
  EXPECT_EQ(json[1]["column"], 13);
  EXPECT_EQ(json[1]["end_column"], 14);
  EXPECT_TRUE(json[1]["help"].is_string());
  EXPECT_EQ(json[1].size(), 8u);  // what the language reference lists, and no more
}

TEST(Render, JsonOfBytesThatAreNotText) {
  SourceMap sources;
  sources.add("a\xff.fold", "\xff");
  Diagnostics diagnostics;
  diagnostics.report({Code::InvalidText, "m\xff", {{0, 0, 1}, "l\xff"}, {}, "r\xff", "h\xff"});
  EXPECT_NO_THROW(render_json(diagnostics, sources).dump());
}

}  // namespace
}  // namespace starfold
