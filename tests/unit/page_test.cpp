// Pages: nothing of a hostile program becomes markup, numbers keep their value, pictures are chosen as
// documented.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "starfold/page/chart.h"
#include "starfold/page/html.h"
#include "starfold/page/number.h"
#include "starfold/page/pages.h"
#include "starfold/page/results.h"

namespace starfold {
namespace {

using page::escape;
using page::picture_for;
using page::PictureKind;

std::shared_ptr<const CompiledProgram> compiled(const std::string& text,
                                                const std::string& name = "test.fold") {
  auto program = compile_program({name, text, {}});
  EXPECT_TRUE(program->plan) << text;
  return program;
}

std::string explained(const std::string& text, const std::string& title = "test.fold") {
  const auto program = compiled(text);
  return explain_html(*program->plan, program->compilation.sources, title);
}

// The names of all elements of a page.
std::set<std::string> elements(const std::string& html) {
  static const std::regex tag("<([A-Za-z!][A-Za-z0-9]*)");
  std::set<std::string> names;
  for (std::sregex_iterator at(html.begin(), html.end(), tag), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

const std::string hostile_text =
    "# </script><img src=x onerror=alert(1)> \" ' & </td></table><style>*{display:none}</style>\n"
    "# <!-- <![CDATA[ &#60;b&#62;\n"
    "input x : [*, p]  # <svg/onload=alert(2)>\n"
    "output m = sum[*](x < 1)  # ]]> &lt;b&gt;\n";
const std::string hostile_name =
    "\"><script>alert(1)</script>\xff\u202e<a href='javascript:alert(2)'>";

TEST(Page, TextIsEscaped) {
  EXPECT_EQ(escape("a < b & c > \"d\" 'e'"), "a &lt; b &amp; c &gt; &quot;d&quot; &#39;e&#39;");
  EXPECT_EQ(escape("&lt;"), "&amp;lt;");
  EXPECT_EQ(escape("tab\tline\n\u03b2"), "tab\tline\n\u03b2");
  EXPECT_EQ(escape("a\xff\xc3"), "a\ufffd\ufffd");
  EXPECT_EQ(escape(std::string_view("\0", 1)), "\u27e8U+0000\u27e9");
  EXPECT_EQ(escape("\u202e"), "\u27e8U+202E\u27e9");
}

TEST(Page, AHostileProgramAddsNoMarkup) {
  const std::set<std::string> plain =
      elements(explained("input x : [*, p]\noutput m = sum[*](x < 1)  # plain\n"));
  const std::string html = explained(hostile_text, hostile_name);
  for (const std::string& name : elements(html)) EXPECT_TRUE(plain.count(name)) << name;
  EXPECT_NE(html.find("&lt;img src=x onerror=alert(1)&gt;"), std::string::npos);
  EXPECT_EQ(html.find("\u202e"), std::string::npos);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_EQ(html.find(" onerror=alert(1)>"), std::string::npos);
}

TEST(Page, AHostileClientAddsNoMarkup) {
  const auto report = [&](const std::string& text, const std::string& program_name,
                          const std::string& client) {
    const auto program = compiled(text, program_name);
    return report_html(run_local(program, {{client, {{"x", Tensor({2, 2}, {1, 2, 3, 4})}}}}, {}),
                       *program);
  };
  const std::set<std::string> plain =
      elements(report("input x : [*, p]\noutput m = sum[*](x < 1)\n", "a.fold", "north"));
  for (const std::string& name : elements(report(hostile_text, hostile_name, hostile_name)))
    EXPECT_TRUE(plain.count(name)) << name;
}

TEST(Page, NeedsNoNetwork) {
  const std::string html = explained("input x : [*]\noutput m = mean[*](x)\n");
  for (const char* outside :
       {"http://", "https://", "src=", "url(", "@import", "<script", "<link"}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

TEST(Page, FormulasReadLikeMathematics) {
  const auto plain = [](const std::string& html) {
    return std::regex_replace(html, std::regex("<[^>]*>"), "");
  };
  EXPECT_EQ(page::formula("p*p + 7*p + 9"),
            "<span class=\"formula\"><i>p</i><sup>2</sup>\u00a0+ 7\u2009<i>p</i>\u00a0+ 9</span>");
  EXPECT_EQ(plain(page::formula("2*p*q - 1")), "2\u2009p\u2009q\u00a0\u2212 1");
  const std::string matrix = "input x : [*, p]\nlet z = concat[2](ones(1), x)\noutput h = z' @ z\n";
  EXPECT_NE(plain(explained(matrix)).find("(p\u00a0+ 1) \u00d7 (p\u00a0+ 1) numbers"),
            std::string::npos);
  EXPECT_EQ(page::grouped(1234567), "1\u202f234\u202f567");
  EXPECT_EQ(page::grouped(-123), "-123");
  EXPECT_EQ(page::grouped(-1234), "-1\u202f234");
}

TEST(Page, NumbersLineUpAndKeepTheirValue) {
  const std::vector<double> coefficients = {-1.25, 0.03125, 10};
  const page::NumberFormat format = page::format_for(coefficients);
  EXPECT_EQ(page::shown(coefficients[0], format), "\u22121.2500");
  EXPECT_EQ(page::shown(coefficients[1], format), "0.0312");
  EXPECT_EQ(page::shown(12345), "12\u202f345");
  EXPECT_EQ(page::shown(1.5e-9), "1.5\u00b710<sup>\u22129</sup>");
  EXPECT_EQ(page::shown(-0.0), "0");
  EXPECT_EQ(page::shown(-HUGE_VAL), "\u2212inf");
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, -2.5})
    EXPECT_EQ(std::strtod(page::exact(value).c_str(), nullptr), value);
  EXPECT_EQ(page::exact(std::nan("")), "nan");
}

TEST(Page, PicturesAreChosenAsDocumented) {
  const auto vector = [](const std::vector<double>& data) {
    return Tensor({static_cast<std::int64_t>(data.size())}, data);
  };
  EXPECT_EQ(picture_for(vector({1}), false), PictureKind::none);
  EXPECT_EQ(picture_for(vector({1, -2}), false), PictureKind::dots);
  EXPECT_EQ(picture_for(vector({3, 0, 12}), false), PictureKind::bars);
  EXPECT_EQ(picture_for(vector({3, 0, 12}), true), PictureKind::dots);
  EXPECT_EQ(picture_for(vector({3.5, 1.2, 0}), false), PictureKind::scree);
  EXPECT_EQ(picture_for(vector({3.5, 1.2, std::nan("")}), false), PictureKind::dots);
  EXPECT_EQ(picture_for(vector(std::vector<double>(41, 0.5)), false), PictureKind::scree);
  EXPECT_EQ(picture_for(vector(std::vector<double>(41, -0.5)), false), PictureKind::curve);
  EXPECT_EQ(picture_for(Tensor({2, 2}, {1, 0.5, 0.5, 1}), false), PictureKind::correlation);
  EXPECT_EQ(picture_for(Tensor({2, 2}, {1, 0.5, 0.4, 1}), false), PictureKind::heat_map);
  EXPECT_EQ(picture_for(Tensor({65, 65}), false), PictureKind::none);
  EXPECT_EQ(picture_for(Tensor({12, 2}), false), PictureKind::curves);
  EXPECT_EQ(picture_for(Tensor({2, 12}), false), PictureKind::none);
}

TEST(Page, IntervalsComeFromTheirCompanions) {
  page::Outputs outputs = {{"b", Tensor({2}, {1, 2})},
                           {"b_se", Tensor({2}, {0.5, 1})},
                           {"c", Tensor({2}, {1, 2})},
                           {"c_se", Tensor({3}, {1, 1, 1})}};
  const auto interval = page::interval_of(outputs, "b");
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->lower.data[0], 1 - 1.96 * 0.5);
  EXPECT_DOUBLE_EQ(interval->upper.data[1], 2 + 1.96);
  EXPECT_FALSE(page::interval_of(outputs, "c"));
  outputs["b_lower"] = Tensor({2}, {0, 0});
  outputs["b_upper"] = Tensor({2}, {9, 9});
  EXPECT_EQ(page::interval_of(outputs, "b")->from,
            (std::vector<std::string>{"b_lower", "b_upper"}));
}

// The names of all axes of a program's outputs, one line for each output.
std::string labelled(const std::string& text, const SizeValues& sizes = {}) {
  const auto program = compiled(text);
  const std::map<std::string, std::vector<std::string>> columns = {
      {"x", {"age", "bmi", "sex"}}, {"z", {"one", "two"}}, {"u", {"one", "three"}}};
  std::string lines;
  for (const auto& axes : page::output_labels(program->compilation.program, columns, sizes)) {
    for (const page::Labels& labels : axes) {
      lines += "[";
      for (const std::string& label : labels) lines += (lines.back() == '[' ? "" : " ") + label;
      lines += "]";
    }
    lines += "\n";
  }
  return lines;
}

TEST(Page, AxesAreCalledLikeTheColumns) {
  EXPECT_EQ(labelled("input x : [*, p]\ninput z : [*, q]\ninput u : [*, q]\n"
                     "output a = sum[*](x)\noutput b = sum[*](z + u)\noutput c = x' @ z\n"
                     "output d = zeros(p)\noutput e = zeros(q)\n"),
            "[age bmi sex]\n[]\n[age bmi sex][one two]\n[age bmi sex]\n[]\n");
}

// Whatever an operation does entry by entry, also to a size that is a number.
TEST(Page, NamesSurviveOperations) {
  for (const char* size : {"p", "3"}) {
    const std::string input = std::string("input x : [*, ") + size + "]\n";
    for (const char* fold : {"sum[*](where(x > 1, x, 0))", "sum[*](isnan(x))", "max[*](not x)",
                             "sum[*](clip(x, [1, 2, 3], 5))", "sum[*](softmax[2](x))",
                             "grad(sum[*](relu(x) @ b), b)", "solve(x' @ x, sum[*](x))",
                             "diag(x' @ x)", "diag(inv(x' @ x))", "cumsum[1](sum[*](x))"}) {
      if (std::string(fold).find("[1, 2, 3]") != std::string::npos && size[0] == 'p') continue;
      EXPECT_EQ(labelled(input + "input b : [" + size + "]\noutput a = " + fold + "\n"),
                "[age bmi sex]\n")
          << fold << size;
    }
  }
}

TEST(Page, SlicesAndLookupsTakeTheirNamesAlong) {
  EXPECT_EQ(labelled("input x : [*, p]\nlet s = sum[*](x)\noutput a = sum[*](x[:, 2:3])\n"
                     "output b = s[1:2]\noutput c = s[2:p]\noutput d = s[[3, 1]]\n"
                     "output e = (x' @ x)[2:3, :]\noutput f = (x' @ x)[2, :]\n"
                     "output g = s[1 + [1, 2]]\noutput h = (x' @ x)[[2, 2]][:, 1:2]\n",
                     {{"p", 3}}),
            "[bmi sex]\n[age bmi]\n[bmi sex]\n[sex age]\n[bmi sex][age bmi sex]\n[age bmi sex]\n"
            "[]\n[bmi bmi][age bmi]\n");
  // A part as long as another input has columns is not called like them.
  EXPECT_EQ(labelled("input x : [*, p]\ninput z : [*, p - 1]\noutput a = sum[*](x)[2:p]\n"
                     "output b = sum[*](z)\n"),
            "[]\n[one two]\n");
}

TEST(Page, AJoinedColumnOfOnesIsTheIntercept) {
  EXPECT_EQ(labelled("input x : [*, p]\ninput z : [*, q]\nlet d = concat[2](ones(1), x, z)\n"
                     "output a = sum[*](d)\noutput b = sum[*](concat[2](full(2, 1), x))\n"
                     "output c = zeros(p + q + 1)\noutput d_ = sum[*](d[:, 1:2])\n"
                     "output e = sum[*](concat[1](ones(1), x'))\n"),
            "[(intercept) age bmi sex one two]\n[]\n[(intercept) age bmi sex one two]\n"
            "[(intercept) age]\n[(intercept) age bmi sex]\n");
}

// An operation that orders entries by itself leaves no name of a column behind.
TEST(Page, EigenvaluesAreNumbered) {
  EXPECT_EQ(
      labelled(
          "input x : [*, p]\nlet c = x' @ x\nlet (v, d) = eigh(c)\nstate s = zeros(p)\nrepeat 2 {\n"
          "  s <- s + v\n}\nlet order = p + 1 - cumsum[1](ones(p))\n"
          "output a = c\noutput b = 2 * v\noutput e = d\noutput f = d'[order]'\noutput g = d @ v\n"
          "output h = s\noutput i = sort(sum[*](x))\noutput j = solve(c, sum[*](x))\n"
          "output k = d[:, 1:2]\noutput l = records(x)\noutput m = diag(c)\n"),
      "[age bmi sex][age bmi sex]\n[]\n[age bmi sex][]\n[age bmi sex][]\n[age bmi sex]\n[]\n[]\n"
      "[age bmi sex]\n[age bmi sex][]\n\n[age bmi sex]\n");
}

TEST(Page, WhatBelongsTogetherIsTogether) {
  const auto program = compiled(
      "input x : [*, p]\nlet s = sum[*](x)\noutput n = records(x)\noutput b = s\noutput z = s\n"
      "output total = sum(s)\noutput b_se = s\noutput b_se_se = s\noutput q = outer(s, s)\n"
      "output r = outer(s, s)\noutput u = [1, 2]\noutput v = [1, 2]\n");
  const RunReport report = run_local(program, {{"a", {{"x", Tensor({1, 2}, {1, 2})}}}}, {});
  std::string text;
  for (const page::Group& group :
       page::groups_of(program->compilation.program, report.results.outputs, {})) {
    for (const page::Entry& entry : group) text += entry.name + (entry.companion ? "' " : " ");
    text += "| ";
  }
  EXPECT_EQ(text, "n | b b_se' z | total | b_se_se | q | r | u | v | ");
}

TEST(Page, TheSummaryIsMadeOfTables) {
  const auto program = compiled(
      "input x : [*, p]\nlet d = concat[2](ones(1), x)\noutput n = records(x)\n"
      "output half = 1 / records(x)\noutput a = sum[*](d)\noutput b = sum[*](d) / 2\noutput c = x' "
      "@ x\n");
  RunReport report =
      run_local(program, {{"north", {{"x", Tensor({3, 2}, {1, 2, 3, 4, 5, 6})}}}}, {});
  report.columns = {{"x", {"age", "bmi"}}};
  report.times.load = 2.5;
  const std::string text = report_text(report, *program);
  EXPECT_EQ(text.substr(0, text.find("\nclient")),
            "n     3\n"
            "half  0.33333\n"
            "\n"
            "              a    b\n"
            "(intercept)   3  1.5\n"
            "age           9  4.5\n"
            "bmi          12  6.0\n"
            "\n"
            "c  2 x 2\n"
            "     age  bmi\n"
            "age   35   44\n"
            "bmi   44   56\n");
  EXPECT_NE(text.find("north         3"), std::string::npos) << text;
  EXPECT_NE(text.find("reading data 2.5 s"), std::string::npos) << text;
}

TEST(Page, ChartsTakeAnyNumbers) {
  const double inf = HUGE_VAL;
  const double nan = std::nan("");
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{},
                                        {nan, nan},
                                        {inf, -inf},
                                        {0, 0},
                                        {1, nan, 3},
                                        {1e-300, 1e300},
                                        {-1e308, 1e308},
                                        std::vector<double>(10000, 2.5),
                                        {5e-324, 1e-320}}) {
    for (const std::string& svg :
         {page::line_chart("l", "x", {{"s", values}}), page::dot_chart("d", {}, values),
          page::dot_chart("d", {"only one"}, values, values, values),
          page::bar_chart("b", {}, values),
          page::histogram("h", values, std::vector<double>(values.size() + 1, 1)),
          values.empty() ? "" : page::histogram("h", {values.data(), values.size() - 1}, values),
          values.size() == 2 ? page::heat_map("h", {}, {}, 1, values) : ""}) {
      const std::string numbers = std::regex_replace(svg, std::regex("<title>[^<]*</title>"), "");
      EXPECT_EQ(numbers.find("nan"), std::string::npos) << numbers;
      EXPECT_EQ(numbers.find("inf"), std::string::npos) << numbers;
      EXPECT_LT(svg.size(), 2'000'000u);
    }
  }
}

}  // namespace
}  // namespace starfold
