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

TEST(Page, AxesAreCalledLikeTheColumns) {
  const auto program = compiled(
      "input x : [*, p]\ninput z : [*, q]\ninput u : [*, q]\n"
      "output a = sum[*](x)\noutput b = sum[*](z + u)\n");
  const page::AxisNames names =
      page::axis_names(program->plan->program,
                       {{"x", {"age", "bmi"}}, {"z", {"one", "two"}}, {"u", {"one", "three"}}});
  EXPECT_EQ(names, (page::AxisNames{{"p", {"age", "bmi"}}}));
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
          page::dot_chart("d", {"only one"}, values, values, values), page::bar_chart("b", values),
          values.size() == 2 ? page::heat_map("h", {}, 1, values) : ""}) {
      const std::string numbers = std::regex_replace(svg, std::regex("<title>[^<]*</title>"), "");
      EXPECT_EQ(numbers.find("nan"), std::string::npos) << numbers;
      EXPECT_EQ(numbers.find("inf"), std::string::npos) << numbers;
      EXPECT_LT(svg.size(), 2'000'000u);
    }
  }
}

}  // namespace
}  // namespace starfold
