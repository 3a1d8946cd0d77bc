#include "starfold/syntax/parser.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/syntax.h"

namespace starfold {
namespace {

using testing::expression_tree;
using testing::ParsedText;
using testing::tree;

// The only mistake of a text.
std::string mistake(std::string text) {
  const auto mistakes = ParsedText(std::move(text)).mistakes();
  if (mistakes.size() == 1) return mistakes[0];
  std::string all = std::to_string(mistakes.size()) + " mistakes";
  for (const auto& m : mistakes) all += "\n" + m;
  return all;
}

std::string help(std::string text) {
  const ParsedText parsed(std::move(text));
  return parsed.diagnostics.items().empty() ? "no mistake" : parsed.diagnostics.items()[0].help;
}

std::string program_tree(std::string text) {
  const ParsedText parsed(std::move(text));
  if (!parsed.mistakes().empty()) return parsed.mistakes()[0];
  return tree(parsed.file.items);
}

TEST(Parser, Precedence) {
  EXPECT_EQ(expression_tree("a or b and not c == d + e * -f^g'"),
            "(or a (and b (not (== c (+ d (* e (- (^ f (transpose g)))))))))");
  EXPECT_EQ(expression_tree("a - b - c"), "(- (- a b) c)");
  EXPECT_EQ(expression_tree("a / b @ c * d"), "(* (@ (/ a b) c) d)");
  EXPECT_EQ(expression_tree("a^b^c"), "(^ a (^ b c))");
  EXPECT_EQ(expression_tree("-a^2"), "(- (^ a 2))");
  EXPECT_EQ(expression_tree("2^-x^2"), "(^ 2 (- (^ x 2)))");
  EXPECT_EQ(expression_tree("--a"), "(- (- a))");
  EXPECT_EQ(expression_tree("not not a"), "(not (not a))");
  EXPECT_EQ(expression_tree("a * -b"), "(* a (- b))");
  EXPECT_EQ(expression_tree("(a + b) * c"), "(* (+ a b) c)");
  EXPECT_EQ(expression_tree("(a < b) == (c < d)"), "(== (< a b) (< c d))");
  EXPECT_EQ(expression_tree("not a == b and c"), "(and (not (== a b)) c)");
}

TEST(Parser, PostfixForms) {
  EXPECT_EQ(expression_tree("sum[*](x)"), "(call sum [*] x)");
  EXPECT_EQ(expression_tree("sum[*visits, 2] (x)"), "(call sum [*visits, 2] x)");
  EXPECT_EQ(expression_tree("sum[](x)"), "(call sum [] x)");
  EXPECT_EQ(expression_tree("f()"), "(call f)");
  EXPECT_EQ(expression_tree("stats.cov(x, y)"), "(call stats.cov x y)");
  EXPECT_EQ(expression_tree("stats.q[2](x)[1]'"), "(transpose (index [1] (call stats.q [2] x)))");
  EXPECT_EQ(expression_tree("x[:, 2, 2:4, 2:, :4, new, *, *v, a + 1:b]"),
            "(index [:, 2, 2..4, 2.., ..4, new, *, *v, (+ a 1)..b] x)");
  EXPECT_EQ(expression_tree("(x)[1]"), "(index [1] x)");
  EXPECT_EQ(expression_tree("[[1, 0], [0, 1]][1]"), "(index [1] (list (list 1 0) (list 0 1)))");
  EXPECT_EQ(expression_tree("(a, b, c)"), "(tuple a b c)");
  EXPECT_EQ(expression_tree("((a, b))"), "(tuple a b)");
  EXPECT_EQ(expression_tree("inf + nan - pi"), "(- (+ inf nan) pi)");
}

TEST(Parser, Statements) {
  EXPECT_EQ(program_tree("import stats\nsize k = 3"), "import stats; size k 3");
  EXPECT_EQ(program_tree("input x : [*, p]\ninput r : [] = 1e-6\ninput z:[*v,p+1,2*p]"),
            "input x [*, p] -; input r [] 1e-6; input z [*v, (+ p 1), (* 2 p)] -");
  EXPECT_EQ(program_tree("fn f(a : [p], b : []) -> [p] = a + b"), "fn f a[p] b[] [p] {} (+ a b)");
  EXPECT_EQ(program_tree("fn f() {\n let a = 1\n state s = a\n a + s\n}"),
            "fn f - {let a - 1; state s - a} (+ a s) braces");
  EXPECT_EQ(program_tree("fn f() { 1 }"), "fn f - {} 1 braces");
  EXPECT_EQ(program_tree("let (q, r) = qr(x)\nlet a : [p] = b"),
            "let tuple q r - (call qr x); let a [p] b");
  EXPECT_EQ(program_tree("state b : [p] = zeros(p)\nrepeat 5 { b <- b - 1 } until b < 1\noutput b"),
            "state b [p] (call zeros p); repeat 5 {update b (- b 1)} (< b 1); output b -");
  EXPECT_EQ(program_tree("repeat n {\n}\n\n\nuntil a\noutput c = a"), "repeat n {} a; output c a");
  EXPECT_EQ(program_tree("repeat 2 {\n trace t = a\n repeat 3 {\n }\n}"),
            "repeat 2 {trace t a; repeat 3 {} -} -");
}

TEST(Parser, EmptyFiles) {
  EXPECT_EQ(program_tree(""), "");
  EXPECT_EQ(program_tree("\n\n"), "");
  EXPECT_EQ(program_tree("# only a comment"), "");
}

TEST(Parser, ContinuesLines) {
  EXPECT_EQ(program_tree("let a = b +\n\n c\nlet d = f(\n  x\n  , y\n)"),
            "let a - (+ b c); let d - (call f x y)");
  EXPECT_EQ(program_tree("let a =\r\n b\r\n"), "let a - b");
}

TEST(Parser, SpansAreExact) {
  const ParsedText parsed("let a = (b + c) * f(x)'\n");
  const auto& let = std::get<ast::Let>(parsed.file.items.at(0).node);
  const auto text = [&](Span span) { return std::string(parsed.sources.text(span)); };
  EXPECT_EQ(text(parsed.file.items[0].span), "let a = (b + c) * f(x)'");
  EXPECT_EQ(text(let.value->span), "(b + c) * f(x)'");
  EXPECT_EQ(text(let.value->text_span), "*");
  EXPECT_EQ(text(let.value->args[0]->span), "b + c");
  EXPECT_TRUE(let.value->args[0]->parenthesized);
  EXPECT_EQ(text(let.value->args[1]->span), "f(x)'");
  EXPECT_EQ(text(let.value->args[1]->args[0]->span), "f(x)");
  EXPECT_EQ(text(let.value->args[1]->args[0]->text_span), "f");
}

TEST(Parser, SpansOfParts) {
  const ParsedText parsed("fn f(x : [*v, p + 1]) {\n  x[:, 2:3]\n}\nrepeat 2 {\n}\nuntil s.g(1)\n");
  const auto text = [&](Span span) { return std::string(parsed.sources.text(span)); };
  const auto& fn = std::get<ast::Fn>(parsed.file.items.at(0).node);
  EXPECT_EQ(text(fn.params[0].type.span), "[*v, p + 1]");
  EXPECT_EQ(text(fn.params[0].type.dims[0].span), "*v");
  EXPECT_EQ(text(fn.params[0].type.dims[1].span), "p + 1");
  EXPECT_EQ(text(fn.value->subscripts[1].span), "2:3");
  EXPECT_EQ(text(fn.open) + text(fn.close), "{}");
  const auto& repeat = std::get<ast::Repeat>(parsed.file.items.at(1).node);
  EXPECT_EQ(text(repeat.open) + text(repeat.close), "{}");
  EXPECT_EQ(text(parsed.file.items[1].span), "repeat 2 {\n}\nuntil s.g(1)");
  EXPECT_EQ(text(repeat.until->span), "s.g(1)");
  EXPECT_EQ(text(repeat.until->text_span), "g");
}

TEST(ParserMistakes, Expressions) {
  EXPECT_EQ(mistake("let a = )"), "E0104 1:9-1:10 expected an expression, found `)`");
  EXPECT_EQ(mistake("let a = \nlet b = 1"),
            "E0104 1:8-1:8 expected an expression, found the end of the line");
  EXPECT_EQ(mistake("let a = b + until"),
            "E0104 1:13-1:18 expected an expression, found the keyword `until`");
  EXPECT_EQ(mistake("let a = 2 x"),
            "E0104 1:11-1:12 expected an operator or the end of the line, found `x`");
  EXPECT_EQ(mistake("let a = f(x]"), "E0104 1:12-1:13 expected `,` or `)`, found `]`");
  EXPECT_EQ(mistake("let a = f(x))"),
            "E0104 1:13-1:14 expected an operator or the end of the line, found `)`");
  EXPECT_EQ(mistake("let a = []"), "E0104 1:10-1:11 expected an expression, found `]`");
  EXPECT_EQ(mistake("let a = ()"), "E0104 1:10-1:11 expected an expression, found `)`");
  EXPECT_EQ(mistake("let a = x[]"), "E0104 1:11-1:12 expected an index, found `]`");
  EXPECT_EQ(mistake("let a = x'(y)"), "E0104 1:11-1:12 expected an operator, found `(`");
  EXPECT_EQ(mistake("let a = s.f"),
            "E0104 1:12-1:12 expected `(` after `s.f`, found the end of the line");
  EXPECT_EQ(mistake("let a = s.f[1]"),
            "E0104 1:15-1:15 expected `(` after `s.f[1]`, found the end of the line");
  EXPECT_EQ(mistake("let a = b == not c"),
            "E0104 1:14-1:17 expected an expression, found the keyword `not`");
}

TEST(ParserMistakes, HelpInExpressions) {
  EXPECT_EQ(help("let c = a <-b"),
            "`<-` updates a state; to compare with a negative value, write a < -b");
  EXPECT_EQ(help("let c = f(a <- (b))"),
            "`<-` updates a state; to compare with a negative value, write `< -` with a space");
  EXPECT_EQ(help("let c = 2 ** 3"), "a power is written with `^`");
  EXPECT_EQ(help("let c = 2 // note"), "a comment starts with `#`");
  EXPECT_EQ(help("let c = x.T"), "the transpose is written x'");
  EXPECT_EQ(help("let c = trace(x)"), "the trace of a matrix is trace_of(x)");
  EXPECT_EQ(help("repeat 2 {\n} until a = b"), "to test whether two values are equal, write `==`");
  EXPECT_EQ(help("let c = x + new"), "`new` adds an axis inside brackets, as in x[:, new]");
}

TEST(ParserMistakes, MoreHelpInExpressions) {
  EXPECT_EQ(help("let c = f(a=1)"), "arguments are given in their order, without names");
  EXPECT_EQ(help("let c = x[:, 2:4:2]"), "a range has two ends, as in x[:, 2:4]");
  EXPECT_EQ(help("let c = 1, 2"), "a vector is written in brackets, as in [1, 2]");
  EXPECT_EQ(help("let c = if a then b"), "choose between values with where(condition, a, b)");
  EXPECT_EQ(help("let c = 'a'"), "`'` after a value transposes it; there are no text values");
  EXPECT_EQ(help("input y : [**, p]"), "");
  EXPECT_EQ(help("import a, b"), "write one `import` line for each module");
  EXPECT_EQ(help("let a = f(x,\n  y + 1\nlet b = 2"), "add `)` at the end of line 2");
  EXPECT_EQ(help("repeat 2 { let a = (1 }"), "add `)` before `}`");
}

TEST(ParserMistakes, ComparisonsDoNotChain) {
  EXPECT_EQ(mistake("let a = b < c < d == e + 1"), "E0108 1:15-1:16 comparisons do not chain");
  EXPECT_EQ(help("let a = b < c <= d"), "join them with `and`: b < c and c <= ...");
  EXPECT_EQ(tree(ParsedText("let a = b < c < d").file.items), "let a - <invalid>");
}

TEST(ParserMistakes, Statements) {
  EXPECT_EQ(mistake("x = 5"), "E0104 1:1-1:2 expected a statement, found `x`");
  EXPECT_EQ(help("x = 5"),
            "to define a value, write let x = ...; to update a state, write x <- ...");
  EXPECT_EQ(mistake("let size = 5"),
            "E0104 1:5-1:9 expected a name after `let`, found the keyword `size`");
  EXPECT_EQ(help("let size = 5"), "`size` is a keyword; choose another name");
  EXPECT_EQ(help("let pi = 5"), "`pi` is a number; choose another name");
  EXPECT_EQ(mistake("let a = 1 let b = 2"),
            "E0104 1:11-1:14 expected the end of the line, found the keyword `let`");
  EXPECT_EQ(mistake("output a + b"),
            "E0104 1:10-1:11 expected `=` or the end of the line, found `+`");
  EXPECT_EQ(help("output a, b"), "write one `output` line for each result");
  EXPECT_EQ(mistake("input x"),
            "E0104 1:8-1:8 expected `:` and a type after the name of the input, found the end of "
            "the line");
  EXPECT_EQ(mistake("input x : p"), "E0104 1:11-1:12 expected a type, found `p`");
  EXPECT_EQ(mistake("input x : [p,]"), "E0104 1:14-1:15 expected a size or `*`, found `]`");
  EXPECT_EQ(mistake("size k = 2.5"),
            "E0104 1:10-1:13 expected a positive whole number, found `2.5`");
  EXPECT_EQ(mistake("repeat 2.5 {\n let a = 1\n}"),
            "E0104 1:8-1:11 expected a whole number or a name after `repeat`, found `2.5`");
  EXPECT_EQ(
      mistake("state a"),
      "E0104 1:8-1:8 expected `=` and a first value after the state, found the end of the line");
  EXPECT_EQ(mistake("}"), "E0104 1:1-1:2 expected a statement, found `}`");
  EXPECT_EQ(mistake("for i in x {\n let = )\n}\nlet b = 1"),
            "E0104 1:1-1:4 expected a statement, found `for`");
  EXPECT_EQ(help("for i in x {"), "a loop is written: repeat 10 { ... } until condition");
}

TEST(ParserMistakes, LinesThatStartWithAnOperator) {
  EXPECT_EQ(mistake("let a = b\n  + c\n  + d\nlet e = 1"),
            "E0104 2:3-2:4 expected a statement, found `+`");
  EXPECT_EQ(help("let a = b\n  + c"), "to continue the line before, put `+` at its end");
  EXPECT_EQ(help("let a = b\n  and c"), "to continue the line before, put `and` at its end");
  EXPECT_EQ(mistake("fn f() {\n let a = b\n  * c\n a\n}"),
            "E0104 3:3-3:4 expected a statement, found `*`");
  EXPECT_EQ(mistake("fn f() {\n a\n  + c\n}"), "E0104 3:3-3:4 expected a statement, found `+`");
  EXPECT_EQ(program_tree("fn f() {\n let a = b\n  - c\n}"), "fn f - {let a - b} (- c) braces");
}

TEST(ParserMistakes, Functions) {
  EXPECT_EQ(mistake("fn f() {\n let a = 1\n}"),
            "E0104 3:1-3:2 expected an expression before `}`, found `}`");
  EXPECT_EQ(mistake("fn f() {\n}"), "E0104 2:1-2:2 expected an expression before `}`, found `}`");
  EXPECT_EQ(mistake("fn f() {\n a\n let b = 1\n b\n}"),
            "E0104 3:2-3:5 expected `}` after the result of the function, found the keyword `let`");
  EXPECT_EQ(help("fn f(x : [p]) {\n return x\n}"),
            "the last line of a function is its result, without a keyword");
  EXPECT_EQ(mistake("fn f(x) = x"),
            "E0104 1:7-1:8 expected `:` and a type after the name of the parameter, found `)`");
  EXPECT_EQ(mistake("fn f()\n{\n 1\n}\nrepeat 2 {\n}"),
            "E0104 2:1-2:2 expected `{` on the line before");
  EXPECT_EQ(
      mistake("fn f()\nlet a = 1"),
      "E0104 1:7-1:7 expected `->`, `=` or `{` after the parameters, found the end of the line");
}

TEST(ParserMistakes, Misplaced) {
  EXPECT_EQ(mistake("repeat 2 {\noutput x\n}\n"),
            "E0109 2:1-2:7 `output` cannot stand inside repeat");
  EXPECT_EQ(mistake("fn f() {\n input x : [*]\n 1\n}\n"),
            "E0109 2:2-2:7 `input` cannot stand inside a function");
  EXPECT_EQ(ParsedText("fn f() {\n import a\n size k = 1\n output b\n fn g() = 1\n 1\n}").codes(),
            "E0109 E0109 E0109 E0109");
  EXPECT_EQ(mistake("let a = 1\nuntil a"), "E0109 2:1-2:6 `until` without a repeat before it");
  EXPECT_EQ(tree(ParsedText("repeat 2 {\n output x\n let a = 1\n}").file.items),
            "repeat 2 {let a - 1} -");
}

TEST(ParserMistakes, Unclosed) {
  EXPECT_EQ(mistake("let a = (1 + 2\nlet b = 3\nlet c = 4"),
            "E0107 1:9-1:10 this `(` is never closed");
  EXPECT_EQ(mistake("let a = f(x,\nlet b = 3"), "E0107 1:10-1:11 this `(` is never closed");
  EXPECT_EQ(mistake("let a = [1, (2)\noutput b"), "E0107 1:9-1:10 this `[` is never closed");
  EXPECT_EQ(mistake("let a = f((x)\nb <- 2"), "E0107 1:10-1:11 this `(` is never closed");
  EXPECT_EQ(mistake("input x : [*, p\ninput y : [*]"), "E0107 1:11-1:12 this `[` is never closed");
  EXPECT_EQ(mistake("repeat 3 {\n let a = f(x\n}\noutput b"),
            "E0107 2:11-2:12 this `(` is never closed");
  EXPECT_EQ(mistake("repeat 3 {\n let a = 1\n"), "E0107 1:10-1:11 this `{` is never closed");
  EXPECT_EQ(mistake("repeat 3 {\n  repeat 5 {\n    b <- 1\n}\noutput b\noutput c"),
            "E0107 1:10-1:11 this `{` is never closed");
  EXPECT_EQ(mistake("fn f() {\n let a = 1\n\ninput x : [*]\noutput c"),
            "E0107 1:8-1:9 this `{` is never closed");
  EXPECT_EQ(mistake("fn f() {\n a\n\noutput c"), "E0107 1:8-1:9 this `{` is never closed");
  EXPECT_EQ(mistake("fn f(x : [p"), "E0107 1:10-1:11 this `[` is never closed");
}

TEST(ParserMistakes, SeveralAreReportedInOrder) {
  const ParsedText parsed(
      "let a = 3abc\nlet b = )\nlet c = a − b\nlet d = (1\nlet e = 1 < 2 < 3\noutput a\n");
  EXPECT_EQ(parsed.codes(), "E0103 E0104 E0101 E0107 E0108");
  EXPECT_EQ(parsed.file.items.size(), 6u);
}

TEST(ParserMistakes, InvalidCharactersAreSaidOnce) {
  EXPECT_EQ(ParsedText("let a = b $ c").codes(), "E0101");
  EXPECT_EQ(ParsedText("let a = $").codes(), "E0101");
  EXPECT_EQ(ParsedText("let a = \"text\"").codes(), "E0101");
  EXPECT_EQ(ParsedText("let $ = 1").codes(), "E0101");
  EXPECT_EQ(ParsedText("$$$").codes(), "E0101");
  EXPECT_EQ(ParsedText("let a = |x|").codes(), "E0101 E0101");
  EXPECT_EQ(ParsedText("repeat 3x {\n}").codes(), "E0103");
}

TEST(ParserMistakes, NamesSurvive) {
  EXPECT_EQ(tree(ParsedText("let a = )\nstate b : [p = 3\ninput c : )\noutput d = ").file.items),
            "let a - <invalid>; state b [<invalid>] <invalid>; input c [<invalid>] -; "
            "output d <invalid>");
}

// Text made to exhaust a parser: a diagnostic, in little time and stack.
class Hostile : public ::testing::Test {
 protected:
  static std::string times(std::string_view part, std::size_t count) {
    std::string out;
    out.reserve(part.size() * count);
    for (std::size_t i = 0; i < count; ++i) out += part;
    return out;
  }

  static std::string codes(std::string text) {
    const testing::Stopwatch watch;
    const std::string out = ParsedText(std::move(text)).codes();
    EXPECT_LT(watch.seconds(), testing::seconds_for_hostile_text);
    return out;
  }
};

TEST_F(Hostile, DeepNesting) {
  EXPECT_EQ(codes("let a = " + times("(", 10000) + "1" + times(")", 10000) + "\nlet b = 1"),
            "E0105");
  EXPECT_EQ(codes("let a = " + times("[", 10000) + "1" + times("]", 10000)), "E0105");
  EXPECT_EQ(codes("let a = " + times("f(", 10000) + "1" + times(")", 10000)), "E0105");
  EXPECT_EQ(codes("let a = " + times("-", 100000) + "1"), "E0105");
  EXPECT_EQ(codes("let a = " + times("not ", 100000) + "1"), "E0105");
  EXPECT_EQ(codes("let a = " + times("x[", 100000)), "E0105");
  EXPECT_EQ(codes("let a = " + times("a or b and c == d + e * (", 10000)), "E0105");
  EXPECT_EQ(codes("input a : " + times("[(", 10000)), "E0105");
}

TEST_F(Hostile, LongChains) {
  EXPECT_EQ(codes("let a = 1" + times(" + 1", 100000) + "\nlet b = 1"), "E0105");
  EXPECT_EQ(codes("let a = x" + times("'", 100000)), "E0105");
  EXPECT_EQ(codes("let a = x" + times("[1]", 100000)), "E0105");
  EXPECT_EQ(codes("let a = 1" + times("^1", 100000)), "E0105");
  EXPECT_EQ(codes("let a = 1" + times(" < 1", 100000)), "E0108");
  EXPECT_EQ(codes("let a = 1" + times(" + 1", 400)), "");
  EXPECT_EQ(codes("let a = [1" + times(", 1", 100000) + "]"), "");
}

TEST_F(Hostile, Blocks) {
  EXPECT_EQ(codes(times("repeat 2 {\n", 64) + times("}\n", 64)), "");
  EXPECT_EQ(codes(times("repeat 2 {\n", 10000) + times("}\n", 10000)), "E0105");
  EXPECT_EQ(codes(times("repeat 2 {\n", 10000)), "E0105");
  codes(times("fn f() {\n", 10000));
  codes(times("{\n", 100000));
  codes(times("}\n", 100000));
  codes(times("}", 500000));
}

TEST_F(Hostile, UnclosedEverything) {
  for (const char* part :
       {"(", "[", "{", "let a = (", "let a = [(\n", "fn f(", "repeat 2 { let a = f(", "(\nlet a\n",
        "x[(1]", "fn f() { (", "let (", "input x : [", "output "}) {
    EXPECT_NE(codes(times(part, 20000)), "") << part;
    EXPECT_NE(codes(part), "") << part;
  }
}

TEST_F(Hostile, NotText) {
  EXPECT_EQ(codes("let a = \xff\n"), "E0102");
  EXPECT_EQ(codes(std::string("let a = 1\0\n", 11)), "E0102");
  EXPECT_EQ(codes(std::string(10'000'000, 'x')), "E0106");
  EXPECT_EQ(codes(times("1,", 1'000'000)), "E0106");
  EXPECT_EQ(codes("let a = " + times("9", 1'000'000)), "E0103");
}

TEST_F(Hostile, ManyMistakes) {
  const ParsedText parsed(times("let a = )\n", 100000));
  EXPECT_EQ(parsed.diagnostics.items().size(), Diagnostics::limit);
}

TEST_F(Hostile, TenThousandStatements) {
  std::string text;
  for (int i = 0; i < 10000; ++i) {
    text += "let v" + std::to_string(i) + " = (x @ beta + 2.5e-3) / sum[*](abs(y - x[:, 2]))\n";
  }
  EXPECT_EQ(codes(text), "");
}

}  // namespace
}  // namespace starfold
