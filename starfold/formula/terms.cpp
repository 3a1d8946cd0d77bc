#include "starfold/formula/terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "starfold/formula/functions.h"

namespace starfold::formula {
namespace {

constexpr std::size_t most_terms = 4000;

using Kind = Expr::Kind;

Term joined(const Term& a, const Term& b) {
  Term result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

// Terms without repetition, in the order of their first mention.
class TermList {
 public:
  void add(Term term) {
    if (known_.insert(term).second) terms_.push_back(std::move(term));
  }
  void add(const TermList& others) {
    for (const Term& term : others.terms_) add(term);
  }
  void remove(const TermList& others) {
    std::erase_if(terms_, [&](const Term& term) { return others.known_.count(term) != 0; });
    known_ = std::set<Term>(terms_.begin(), terms_.end());
  }
  // All variables that occur.
  Term all() const {
    Term result;
    for (const Term& term : terms_) result = joined(result, term);
    return result;
  }
  const std::vector<Term>& terms() const { return terms_; }

 private:
  std::vector<Term> terms_;
  std::set<Term> known_;
};

class Expander {
 public:
  explicit Expander(const Formula& formula) : formula_(formula) {
    if (formula.response) response_ = to_text(*formula.response);
  }

  Terms expand() {
    TermList list = encode(formula_.right);
    Terms result;
    result.intercept = intercept_;
    result.offsets = std::move(offsets_);
    result.terms = list.terms();
    std::stable_sort(result.terms.begin(), result.terms.end(),
                     [](const Term& a, const Term& b) { return a.size() < b.size(); });
    result.variables = std::move(variables_);
    return result;
  }

 private:
  [[noreturn]] void fail(const Expr& at, const std::string& what) const {
    throw FormulaError(formula_, at, what);
  }

  TermList encode(const Expr& expr) {
    if (expr.kind == Kind::number) return number(expr);
    if (expr.kind == Kind::text)
      fail(expr, "a text is no variable; names are written without quotes");
    if (expr.kind == Kind::call) {
      const std::string& f = expr.text;
      const bool two = expr.args.size() == 2;
      if (f == "(") return encode(expr.args[0]);
      if (f == "+") return plus(expr);
      if (f == "-") return minus(expr);
      if (two && (f == ":" || f == "*")) {
        TermList left = term_operand(expr, 0);  // in this order: variables are numbered
        const TermList right = term_operand(expr, 1);
        return f == ":" ? interact(expr, left, right) : cross(expr, std::move(left), right);
      }
      if (two && f == "/") return nest(expr);
      if (two && f == "%in%") return inside(expr);
      if (two && f == "^") return power(expr);
      if (f == "offset") return offset(expr);
      if (f == "|")
        fail(expr,
             "random effects are no columns: they belong to a program such as random_intercept, "
             "whose formula is y ~ age | ward");
    }
    TermList list;
    list.add({variable(expr)});
    return list;
  }

  // 1 and 0 say whether there is an intercept; behind a minus the other way round.
  TermList number(const Expr& expr) {
    if (expr.value != 0 && expr.value != 1)
      fail(expr,
           "only 1 (an intercept) and 0 (none) can be terms; numbers to compute with stand in "
           "I(...)");
    intercept_ = (expr.value == 1) == adding_;
    return {};
  }

  // A number in an interaction means nothing.
  TermList term_operand(const Expr& expr, std::size_t which) {
    const Expr& operand = expr.args[which];
    if (operand.kind == Kind::number)
      fail(operand, fmt::format("a number cannot be an operand of {}; to compute with it, write "
                                "I({})",
                                expr.text, to_text(expr)));
    return encode(operand);
  }

  TermList plus(const Expr& expr) {
    TermList list = encode(expr.args[0]);
    if (expr.args.size() == 2) list.add(encode(expr.args[1]));
    return checked(expr, std::move(list));
  }

  TermList minus(const Expr& expr) {
    TermList list;
    if (expr.args.size() == 2) list = encode(expr.args[0]);
    adding_ = !adding_;
    const std::size_t offsets = offsets_.size();
    const Expr& taken = expr.args.back();
    list.remove(encode(taken));
    if (offsets_.size() > offsets) fail(taken, "an offset cannot be taken away");
    adding_ = !adding_;
    return list;
  }

  TermList interact(const Expr& at, const TermList& left, const TermList& right) {
    if (left.terms().size() * right.terms().size() > most_terms) too_many(at);
    TermList list;
    for (const Term& a : left.terms()) {
      for (const Term& b : right.terms()) list.add(joined(a, b));
    }
    return list;
  }

  TermList cross(const Expr& at, TermList left, const TermList& right) {
    const TermList both = interact(at, left, right);
    left.add(right);
    left.add(both);
    return checked(at, std::move(left));
  }

  TermList nest(const Expr& expr) {
    TermList left = term_operand(expr, 0);
    const TermList right = term_operand(expr, 1);
    const Term outer = left.all();
    for (const Term& term : right.terms()) left.add(joined(outer, term));
    return checked(expr, std::move(left));
  }

  TermList inside(const Expr& expr) {
    const TermList left = term_operand(expr, 0);
    const Term outer = term_operand(expr, 1).all();
    TermList list;
    for (const Term& term : left.terms()) list.add(joined(term, outer));
    return list;
  }

  TermList power(const Expr& expr) {
    const TermList base = term_operand(expr, 0);
    const Expr& exponent = expr.args[1];
    const double count = exponent.kind == Kind::number ? exponent.value : 0;
    if (!(count >= 1 && count == std::floor(count)))
      fail(exponent,
           "a power of terms is a positive whole number; to compute a power, write "
           "I(" +
               to_text(expr) + ")");
    TermList list = base;
    for (double i = 1; i < count; ++i) {
      // A term with itself is the term, so that those that were there stay.
      TermList next = checked(expr, interact(expr, list, base));
      const bool settled = next.terms() == list.terms();  // all that can be is there
      list = std::move(next);
      if (settled) break;
    }
    return list;
  }

  TermList offset(const Expr& expr) {
    if (expr.args.size() != 1 || expr.args[0].kind == Kind::named)
      fail(expr, "offset() takes one value: offset(log(years))");
    offsets_.push_back(expr.args[0]);
    return {};
  }

  TermList checked(const Expr& at, TermList list) const {
    if (list.terms().size() > most_terms) too_many(at);
    return list;
  }
  [[noreturn]] void too_many(const Expr& at) const {
    fail(at, fmt::format("this makes more than {} terms", most_terms));
  }

  std::size_t variable(const Expr& expr) {
    const std::string text = to_text(expr);
    if (text == response_)
      fail(expr, fmt::format("{} is the response; it cannot explain itself", text));
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i] == text) return i;
    }
    texts_.push_back(text);
    variables_.push_back(expr);
    return texts_.size() - 1;
  }

  const Formula& formula_;
  std::string response_;
  std::vector<Expr> variables_;
  std::vector<std::string> texts_;
  std::vector<Expr> offsets_;
  bool intercept_ = true;
  bool adding_ = true;
};

bool any_dot(const Expr& expr) {
  return (expr.kind == Kind::name && expr.text == ".") ||
         std::any_of(expr.args.begin(), expr.args.end(), any_dot);
}

// Names with + between them, in parentheses where there are several.
Expr sum_of(const std::vector<std::string>& names, const Expr& dot) {
  std::optional<Expr> sum;
  for (const std::string& name : names) {
    Expr one = dot;
    one.text = name;
    if (!sum) {
      sum = std::move(one);
      continue;
    }
    Expr both{Kind::call, 0, "+", {}, dot.begin, dot.end};
    both.args.push_back(*std::move(sum));
    both.args.push_back(std::move(one));
    sum = std::move(both);
  }
  if (names.size() == 1) return *sum;
  Expr whole{Kind::call, 0, "(", {}, dot.begin, dot.end};
  whole.args.push_back(*std::move(sum));
  return whole;
}

Expr replaced(const Formula& formula, const Expr& expr, const std::vector<std::string>& rest,
              bool as_term) {
  if (expr.kind == Kind::name && expr.text == ".") {
    if (!as_term) throw FormulaError(formula, expr, "`.` stands for terms, not inside a function");
    return sum_of(rest, expr);
  }
  static const std::set<std::string> operators = {"(", "+", "-", ":", "*", "/", "%in%", "^"};
  Expr result = expr;
  for (Expr& arg : result.args)
    arg = replaced(formula, arg, rest, as_term && operators.count(expr.text) != 0);
  return result;
}

void collect(const Expr& expr, std::vector<std::string>& names) {
  if (expr.kind == Kind::name && expr.text != "TRUE" && expr.text != "FALSE" &&
      std::find(names.begin(), names.end(), expr.text) == names.end())
    names.push_back(expr.text);
  // What follows the column in these is an option or a level.
  const bool options = expr.is_call("poly") || expr.is_call("C") || expr.is_call("relevel");
  for (const Expr& arg : expr.args) {
    collect(arg, names);
    if (options) break;
  }
}

}  // namespace

bool has_dot(const Formula& formula) { return any_dot(formula.right); }

Formula without_dot(const Formula& formula, const std::vector<std::string>& rest) {
  if (formula.response && any_dot(*formula.response))
    throw FormulaError(formula, *formula.response, "`.` cannot stand on the left side");
  if (formula.group && any_dot(*formula.group))
    throw FormulaError(formula, *formula.group, "`.` is no group");
  if (!has_dot(formula)) return formula;
  Formula result = formula;
  // Where `.` cannot stand is wrong whatever it stands for.
  result.right =
      replaced(formula, formula.right, rest.empty() ? std::vector<std::string>{"."} : rest, true);
  if (rest.empty())
    throw FormulaError(formula, formula.right, "no column is left that `.` could stand for");
  return result;
}

Terms expand(const Formula& formula, const std::vector<std::string>& rest) {
  return Expander(without_dot(formula, rest)).expand();
}

std::vector<Expr> conditions_in(const Formula& formula) {
  std::vector<Expr> found;
  std::set<std::string> seen;
  const auto is_truth = [](const Expr& expr) {
    const Function* function =
        expr.kind == Expr::Kind::call ? find_function(expr.text, expr.args.size()) : nullptr;
    return function != nullptr && function->truth;
  };
  std::vector<const Expr*> pending = {&formula.right};
  if (formula.response) pending.push_back(&*formula.response);
  if (formula.group) pending.push_back(&*formula.group);
  while (!pending.empty()) {
    const Expr& expr = *pending.back();
    pending.pop_back();
    if (is_truth(expr)) {  // what it is made of does not leave
      if (seen.insert(to_text(expr)).second) found.push_back(expr);
      continue;
    }
    for (const Expr& arg : expr.args) pending.push_back(&arg);
    // A number as a condition is true where it is not 0.
    if (!expr.is_call("ifelse") || expr.args.empty() || is_truth(expr.args[0])) continue;
    Expr condition{Expr::Kind::call, 0, "!=", {expr.args[0], Expr{}}};
    if (seen.insert(to_text(condition)).second) found.push_back(std::move(condition));
  }
  return found;
}

std::vector<std::string> names_in(const Expr& expr) {
  std::vector<std::string> names;
  collect(expr, names);
  return names;
}

std::vector<std::string> names_in(const Formula& formula) {
  std::vector<std::string> names;
  if (formula.response) collect(*formula.response, names);
  collect(formula.right, names);
  if (formula.group) collect(*formula.group, names);
  return names;
}

}  // namespace starfold::formula
