#include "starfold/syntax/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/support/syntax.h"

namespace starfold {
namespace {

using testing::ParsedText;

std::string formatted(std::string text) {
  const ParsedText parsed(std::move(text));
  if (!parsed.mistakes().empty()) return parsed.mistakes()[0];
  return format(parsed.sources, parsed.file);
}

// Formats, and expects that formatting again changes nothing.
std::string stable(std::string text) {
  const std::string once = formatted(std::move(text));
  EXPECT_EQ(formatted(once), once);
  return once;
}

std::string expression(std::string text) {
  const ParsedText parsed("let a = " + text + "\n");
  EXPECT_TRUE(parsed.mistakes().empty()) << text;
  return format(*std::get<ast::Let>(parsed.file.items.at(0).node).value);
}

TEST(Format, Expressions) {
  EXPECT_EQ(expression("a+b*-c^ 2-d@e/f"), "a + b * -c^2 - d @ e / f");
  EXPECT_EQ(expression("a  <b   and not(c==d)or not e"), "a < b and not (c == d) or not e");
  EXPECT_EQ(expression("2^-x^(y+1)"), "2^-x^(y + 1)");
  EXPECT_EQ(expression("sum [ *,2 ] ( x , y )"), "sum[*, 2](x, y)");
  EXPECT_EQ(expression("x[ : ,2 : 4,2 :,: b, new,*v ]'"), "x[:, 2:4, 2:, :b, new, *v]'");
  EXPECT_EQ(expression("stats . cov(x)"), "stats.cov(x)");
  EXPECT_EQ(expression("[[1,0],[0,1]]"), "[[1, 0], [0, 1]]");
  EXPECT_EQ(expression("f((a,b))"), "f((a, b))");
  EXPECT_EQ(expression("1.50e-03 + .5 + 1. + inf"), "1.50e-03 + .5 + 1. + inf");
  EXPECT_EQ(expression("(((a))) + (b)"), "(a) + (b)");
  EXPECT_EQ(expression("--a"), "--a");
}

TEST(Format, AddsParenthesesThatTheTreeNeeds) {
  const auto name = [](std::string text) {
    auto e = std::make_unique<ast::Expr>();
    e->kind = ast::ExprKind::name;
    e->text = std::move(text);
    return e;
  };
  const auto node = [](ast::ExprKind kind, std::string op, auto... args) {
    auto e = std::make_unique<ast::Expr>();
    e->kind = kind;
    e->text = std::move(op);
    (e->args.push_back(std::move(args)), ...);
    return e;
  };
  constexpr auto binary = ast::ExprKind::binary;
  constexpr auto unary = ast::ExprKind::unary;
  constexpr auto transpose = ast::ExprKind::transpose;
  EXPECT_EQ(format(*node(binary, "-", name("a"), node(binary, "+", name("b"), name("c")))),
            "a - (b + c)");
  EXPECT_EQ(format(*node(binary, "^", node(unary, "-", name("a")), name("b"))), "(-a)^b");
  EXPECT_EQ(format(*node(binary, "^", node(binary, "^", name("a"), name("b")), name("c"))),
            "(a^b)^c");
  EXPECT_EQ(format(*node(transpose, "'", node(binary, "@", name("a"), name("b")))), "(a @ b)'");
  EXPECT_EQ(format(*node(binary, "<", node(binary, "<", name("a"), name("b")), name("c"))),
            "(a < b) < c");
  EXPECT_EQ(format(*node(binary, "+", node(unary, "not", name("a")), name("b"))), "(not a) + b");
  EXPECT_EQ(format(*node(unary, "-", node(binary, "*", name("a"), name("b")))), "-(a * b)");
}

TEST(Format, Statements) {
  EXPECT_EQ(stable("import  stats\nsize k=3\ninput x:[ * ,p]\ninput r:[]=1\n"),
            "import stats\nsize k = 3\ninput x : [*, p]\ninput r : [] = 1\n");
  EXPECT_EQ(stable("fn f( x:[p],y:[*v,2*p] )->[p]=x"),
            "fn f(x : [p], y : [*v, 2 * p]) -> [p] = x\n");
  EXPECT_EQ(stable("fn f() { let a=1\n(a) }"), "fn f() {\n  let a = 1\n  (a)\n}\n");
  EXPECT_EQ(stable("let(a,b)=f(x)\nstate s:[p]=a\noutput s\noutput t=s"),
            "let (a, b) = f(x)\nstate s : [p] = a\noutput s\noutput t = s\n");
  EXPECT_EQ(stable("repeat 3{\n\n\nrepeat n{s<-s\n}\n\n\ntrace t=s }\n\nuntil s<1"),
            "repeat 3 {\n  repeat n {\n    s <- s\n  }\n\n  trace t = s\n} until s < 1\n");
  EXPECT_EQ(stable(""), "");
  EXPECT_EQ(stable("\n\n\n"), "");
}

TEST(Format, BlankLines) {
  EXPECT_EQ(stable("\n\nlet a = 1\nlet b = 2\n\nlet c = 3\n\n\n\nlet d = 4\n\n\n"),
            "let a = 1\nlet b = 2\n\nlet c = 3\n\nlet d = 4\n");
  EXPECT_EQ(stable("let a = 1\r\n\r\nlet b = 2"), "let a = 1\n\nlet b = 2\n");
}

TEST(Format, Comments) {
  EXPECT_EQ(stable("#top\n\n\n  # next  \nlet a = 1 # one\nlet b = 2#two\n\n# last"),
            "#top\n\n# next\nlet a = 1  # one\nlet b = 2  #two\n\n# last\n");
  EXPECT_EQ(stable("repeat 3 { # open\n# in\nb <- 1 # one\n\n# end\n} # close\n# after"),
            "repeat 3 {  # open\n  # in\n  b <- 1  # one\n\n  # end\n}  # close\n# after\n");
  EXPECT_EQ(stable("repeat 3 { b <- 1 } # close"), "repeat 3 {\n  b <- 1\n}  # close\n");
  EXPECT_EQ(stable("repeat 3 {\n# only\n}"), "repeat 3 {\n  # only\n}\n");
  EXPECT_EQ(stable("fn f() {\n# why\n1 # one\n# end\n} # f"),
            "fn f() {\n  # why\n  1  # one\n  # end\n}  # f\n");
}

TEST(Format, CommentsInsideStatementsMoveAbove) {
  EXPECT_EQ(stable("let z = 0\n\nlet a = f(x, # first\n  # second\n  y) # last"),
            "let z = 0\n\n# first\n# second\nlet a = f(x, y)  # last\n");
  EXPECT_EQ(stable("fn f(x : [p], # x\n y : [p]) { # f\n (# in\n x # out\n )\n}"),
            "# x\nfn f(x : [p], y : [p]) {  # f\n  # in\n  # out\n  (x)\n}\n");
  EXPECT_EQ(stable("repeat 3 {\n b <- 1\n} # a\n# b\nuntil (b < # c\n 1 # d\n) # e"),
            "repeat 3 {\n  b <- 1\n  # a\n  # b\n  # c\n  # d\n} until (b < 1)  # e\n");
}

TEST(Format, BreaksLongStatementsAtTheOutermostPlace) {
  const std::string a(40, 'a');
  const std::string b(40, 'b');
  const std::string c(40, 'c');
  EXPECT_EQ(stable("let x = " + a + "+" + b + "*2+" + c),
            "let x = " + a + " +\n  " + b + " * 2 +\n  " + c + "\n");
  EXPECT_EQ(stable("let x = f(" + a + "," + b + "+1," + c + ") # note"),
            "let x = f(\n  " + a + ",\n  " + b + " + 1,\n  " + c + "\n)  # note\n");
  EXPECT_EQ(stable("let x = g(f(" + a + "," + b + "," + c + "))"),
            "let x = g(\n  f(\n    " + a + ",\n    " + b + ",\n    " + c + "\n  )\n)\n");
  EXPECT_EQ(stable("repeat 2 {\n} until " + a + "<" + b + " and " + c + "<1"),
            "repeat 2 {\n} until " + a + " < " + b + " and\n  " + c + " < 1\n");
  EXPECT_EQ(stable("fn f(" + a + ":[*,p]," + b + ":[p]," + c + ":[]) -> [p] = 1"),
            "fn f(\n  " + a + " : [*, p],\n  " + b + " : [p],\n  " + c + " : []\n) -> [p] = 1\n");
}

TEST(Format, ListsOfNumbersFillLines) {
  std::string numbers = "1000";
  for (int i = 1001; i < 1040; ++i) numbers += "," + std::to_string(i);
  const std::string text = stable("let x = [" + numbers + "]");
  EXPECT_EQ(text.substr(0, 30), "let x = [\n  1000, 1001, 1002, ");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

TEST(Format, ManyStatementsAreQuick) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "let v = (x @ beta + 2.5e-3) / sum[*](abs(y))  # note\n";
  EXPECT_EQ(formatted(text), text);
  std::string list = "let v = [1";
  for (int i = 0; i < 200000; ++i) list += ", 1";
  EXPECT_EQ(formatted(list + "]").substr(0, 9), "let v = [");
}

}  // namespace
}  // namespace starfold
