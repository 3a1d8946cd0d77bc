// Law: formatting keeps the tree and the comments of every program, and formatting twice changes
// nothing. Programs are random, laid out as badly as the grammar allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "starfold/syntax/format.h"
#include "tests/laws/law.h"
#include "tests/support/syntax.h"

namespace starfold {
namespace {

using testing::ParsedText;
using testing::tree;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  std::string_view pick(std::vector<std::string_view> choices) {
    return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
  }

 private:
  std::mt19937 engine_;
};

// Writes a program: statements with random blanks, comments, and line ends where they are free.
class ProgramWriter {
 public:
  explicit ProgramWriter(unsigned seed) : random_(seed) {}

  std::string run() {
    for (int count = random_.below(8); count > 0; --count) {
      item();
      end_statement();
    }
    return out_;
  }

 private:
  void word(std::string_view text) { out_ += text; }

  // Between words where a newline would end the statement.
  void gap() { out_ += random_.pick({" ", "  ", "\t"}); }
  void maybe_gap() {
    if (brackets_ > 0) return free_gap();
    if (random_.chance(40)) gap();
  }
  // Where a line may end without ending the statement.
  void free_gap() {
    while (random_.chance(20)) {
      gap();
      if (random_.chance(30)) comment();
      out_ += random_.pick({"\n", "\r\n", "\n\n", "\n  "});
    }
    if (random_.chance(60)) gap();
  }
  void comment() {
    word("# ");
    for (int count = random_.below(4); count > 0; --count) {
      word(random_.pick({"note ", "é ", "(", "let ", "# ", "]\t", "} "}));
    }
    word(std::to_string(comments_++));
  }
  void end_statement() {
    maybe_gap_outside();
    if (random_.chance(20)) comment();
    out_ += random_.pick({"\n", "\r\n", "\n\n", "\n\n\n", " \n"});
    while (random_.chance(15)) {
      maybe_gap_outside();
      comment();
      out_ += random_.pick({"\n", "\n\n", "\r\n"});
    }
  }
  void maybe_gap_outside() {
    if (random_.chance(30)) gap();
  }
  // A sign after which the line may end.
  void sign(std::string_view text) {
    maybe_gap();
    word(text);
    free_gap();
  }

  template <typename Element>
  void bracketed(std::string_view opener, std::string_view closer, int count, Element element) {
    word(opener);
    ++brackets_;
    for (int i = 0; i < count; ++i) {
      if (i > 0) sign(",");
      free_gap();
      element();
    }
    free_gap();
    --brackets_;
    word(closer);
  }

  void name() {
    word(random_.pick({"x", "y", "beta", "step_1", "a_rather_long_name_for_a_value", "Q"}));
  }
  void number() { word(random_.pick({"1", "2.50", "1e-6", ".5", "3.", "inf", "nan", "pi", "10"})); }

  void expression(int depth) {
    if (random_.chance(depth > 4 ? 5 : 45)) {
      if (random_.chance(15)) return negation(depth);
      operand(depth + 1);
      const auto op = random_.pick({"+", "-", "*", "/", "@", "^", "and", "or"});
      if (op == "and" || op == "or") {
        gap();
        word(op);
        gap();
        free_gap();
      } else {
        sign(op);
      }
      return operand(depth + 1);
    }
    operand(depth);
  }

  void negation(int depth) {
    word("not");
    gap();
    operand(depth + 1);
    sign(random_.pick({"==", "!=", "<", "<=", ">", ">="}));
    // A minus would make `<-` of a `<`.
    word(" ");
    operand(depth + 1);
  }

  void operand(int depth) {
    if (random_.chance(15)) {
      word("-");
      maybe_gap();
    }
    const int choice = depth > 5 ? random_.below(2) : random_.below(9);
    if (choice == 0 || choice == 7) return name();
    if (choice == 1) return number();
    if (choice == 2) return bracketed("(", ")", 1, [&] { expression(depth + 1); });
    if (choice == 3) {
      return bracketed("[", "]", 1 + random_.below(random_.chance(10) ? 30 : 4),
                       [&] { expression(depth + 1); });
    }
    if (choice == 4) {
      name();
      return subscripts(depth, 1 + random_.below(3));
    }
    if (choice == 5) {
      bracketed("(", ")", 1, [&] { expression(depth + 1); });
      return word(random_.pick({"'", "''", "[1]"}));
    }
    if (choice == 8) {
      return bracketed("(", ")", 2 + random_.below(2), [&] { expression(depth + 1); });
    }
    call(depth);
  }

  void call(int depth) {
    word(random_.pick({"f", "sum", "stats.cov", "concat", "a_function_with_a_long_name"}));
    if (random_.chance(40)) subscripts(depth, random_.below(3));
    bracketed("(", ")", random_.below(4), [&] { expression(depth + 1); });
  }

  void subscripts(int depth, int count) {
    bracketed("[", "]", count, [&] {
      const int choice = random_.below(6);
      if (choice == 0) return word(":");
      if (choice == 1) return word("new");
      if (choice == 2) return word(random_.pick({"*", "*visits", "* visits"}));
      if (choice == 3) return expression(depth + 1);
      if (choice != 4) expression(depth + 1);
      sign(":");
      if (choice == 4 || random_.chance(50)) expression(depth + 1);
    });
  }

  void type() {
    bracketed("[", "]", random_.below(4), [&] {
      if (random_.chance(50)) return word(random_.pick({"*", "*visits", "p", "3"}));
      word("p");
      sign(random_.pick({"+", "*", "-"}));
      word("2");
    });
  }

  void assign(std::string_view text) {
    sign(text);
    expression(0);
  }
  void keyword(std::string_view text) {
    word(text);
    gap();
  }

  void item() {
    switch (random_.below(6)) {
      case 0:
        keyword("input");
        name();
        sign(":");
        type();
        if (random_.chance(40)) assign("=");
        return;
      case 1:
        keyword(random_.pick({"import", "output"}));
        return name();
      case 2:
        return function();
      case 3:
        keyword("size");
        name();
        sign("=");
        return word("3");
      case 4:
        keyword("output");
        name();
        return assign("=");
      default:
        return statement(0);
    }
  }

  void function() {
    keyword("fn");
    name();
    bracketed("(", ")", random_.below(3), [&] {
      name();
      sign(":");
      type();
    });
    if (random_.chance(50)) {
      sign("->");
      type();
    }
    if (random_.chance(50)) return assign("=");
    gap();
    block(0, true);
  }

  void statement(int depth) {
    switch (random_.below(depth > 2 ? 4 : 5)) {
      case 0:
        keyword(random_.pick({"let", "state"}));
        name();
        if (random_.chance(30)) {
          sign(":");
          type();
        }
        return assign("=");
      case 1:
        keyword("let");
        bracketed("(", ")", 1 + random_.below(3), [&] { name(); });
        return assign("=");
      case 2:
        name();
        return assign("<-");
      case 3:
        keyword("trace");
        name();
        return assign("=");
      default:
        return loop(depth);
    }
  }

  void loop(int depth) {
    keyword("repeat");
    word(random_.pick({"25", "n"}));
    gap();
    block(depth + 1, false);
    if (random_.chance(50)) {
      if (random_.chance(30)) end_statement();
      gap();
      keyword("until");
      expression(0);
    }
  }

  void block(int depth, bool result) {
    word("{");
    if (random_.chance(70)) {
      end_statement();
    } else {
      gap();
    }
    for (int count = random_.below(4); count > 0; --count) {
      statement(depth);
      end_statement();
    }
    if (result) {
      expression(0);
      if (random_.chance(70)) end_statement();
    }
    maybe_gap_outside();
    word("}");
  }

  Random random_;
  std::string out_;
  int brackets_ = 0;
  int comments_ = 0;
};

std::vector<std::string> sorted_comments(const ParsedText& parsed) {
  std::vector<std::string> out;
  for (const ast::Comment& comment : parsed.file.comments) {
    std::string text(parsed.sources.text(comment.span));
    out.push_back(text.substr(0, text.find_last_not_of(" \t") + 1));
  }
  std::sort(out.begin(), out.end());
  return out;
}

void expect_law(const std::string& text) {
  const ParsedText before(text);
  ASSERT_TRUE(before.mistakes().empty()) << before.mistakes()[0] << "\n" << text;
  const std::string once = format(before.sources, before.file);
  const ParsedText after(once);
  ASSERT_TRUE(after.mistakes().empty()) << after.mistakes()[0] << "\n" << text << "\n" << once;
  EXPECT_EQ(tree(before.file.items), tree(after.file.items)) << text;
  EXPECT_EQ(sorted_comments(before), sorted_comments(after)) << text;
  EXPECT_EQ(format(after.sources, after.file), once) << text;
  if (!once.empty()) {
    EXPECT_EQ(once.back(), '\n');
    EXPECT_NE(once.substr(std::max<std::size_t>(once.size(), 2) - 2), "\n\n");
  }
}

TEST(FormatThenParse, RandomPrograms) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(laws::law_programs(1000)); ++seed) {
    expect_law(ProgramWriter(seed).run());
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// A tree that no text need have had: its parentheses are the formatter's own.
ast::ExprPtr random_tree(Random& random, int depth) {
  auto expr = std::make_unique<ast::Expr>();
  const auto child = [&] { expr->args.push_back(random_tree(random, depth + 1)); };
  switch (depth > 5 ? random.below(2) : random.below(9)) {
    case 0:
      expr->kind = ast::ExprKind::name;
      expr->text = random.pick({"x", "beta"});
      break;
    case 1:
      expr->kind = ast::ExprKind::number;
      expr->text = random.pick({"1", "2.5", "inf"});
      break;
    case 2:
      expr->kind = ast::ExprKind::unary;
      expr->text = random.pick({"-", "not"});
      child();
      break;
    case 3:
      expr->kind = ast::ExprKind::transpose;
      child();
      break;
    case 4:
      expr->kind = ast::ExprKind::index;
      expr->has_subscripts = true;
      child();
      expr->subscripts.resize(1);
      expr->subscripts[0].kind = ast::Subscript::Kind::range;
      expr->subscripts[0].first = random_tree(random, depth + 1);
      break;
    case 5:
      expr->kind = random.chance(50) ? ast::ExprKind::list : ast::ExprKind::tuple;
      child(), child();
      break;
    case 6:
      expr->kind = ast::ExprKind::call;
      expr->text = "f";
      child();
      break;
    default:
      expr->kind = ast::ExprKind::binary;
      expr->text = random.pick(
          {"+", "-", "*", "/", "@", "^", "and", "or", "==", "!=", "<", "<=", ">", ">="});
      child(), child();
      break;
  }
  return expr;
}

TEST(FormatThenParse, RandomTrees) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(laws::law_programs(1000)); ++seed) {
    Random random(seed);
    const ast::ExprPtr expr = random_tree(random, 0);
    EXPECT_EQ(testing::expression_tree(format(*expr)), tree(*expr)) << "seed " << seed;
  }
}

TEST(FormatThenParse, WrittenPrograms) {
  expect_law(R"(# Logistic regression by Newton's method (IRLS).
input x : [*, p]                 # covariates: one row per record, split across clients
input y : [*]                    # response, 0 or 1
input ridge : [] = 1e-6          # a shared input with a default

state beta : [p] = zeros(p)
repeat 25 {
  let eta  = x @ beta                                   # [*]     stays on each client
  let loss = softplus(eta) - y * eta                    # [*]     per-record loss
  let g    = grad(sum[*](loss), beta) + ridge * beta    # [p]     shared: the record axis is folded
  let h    = hessian(sum[*](loss), beta) + ridge * eye(p)
  let step = solve(h, g)                                # [p]     shared-only linear algebra
  trace loss = sum[*](loss)                             # one number per iteration
  beta <- beta - step
} until max(abs(step)) < 1e-9
output beta
)");
  expect_law(R"(import stats
size k = 3
fn center(x : [*, p]) -> [*, p] = x - mean[*](x)   # per column
fn moments(x : [*, p]) {
  let m = mean[*](x)     # one round
  # the second moment about it
  (m, (x - m)' @ (x - m) / (records(x) - 1))
}
input x : [*visits, p]
input label : [*visits]
let (m, s) = moments(concat[2](ones(1), x[:, 2:], x[:, :1], one_hot(label, k)[:, 1:k, new]'))
output m
output s = where(s > 0 and not isnan(s) or s == inf, s, -s^-2)
)");
  expect_law("\xEF\xBB\xBFlet a = 1\r\n\r\n\r\n# end without a line end");
}

}  // namespace
}  // namespace starfold
