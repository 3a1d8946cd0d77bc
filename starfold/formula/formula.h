// Formulas in the notation of R: `readmitted ~ age * sex + log(bmi)`. What is written, before it meets columns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/base/usage_error.h"

namespace starfold::formula {

// A part of a formula as it is written. Operators are calls of their sign, parentheses a call of "(".
struct Expr {
  enum class Kind { number, text, name, call, named };  // named: `raw = TRUE` among arguments
  Kind kind = Kind::number;
  double value = 0;       // of a number
  std::string text = {};  // of a text, name, called function, named argument
  std::vector<Expr> args = {};
  std::size_t begin = 0;  // where it stands
  std::size_t end = 0;

  bool is_call(std::string_view function) const { return kind == Kind::call && text == function; }
};

struct Formula {
  std::string text;              // as it was written, for messages
  std::optional<Expr> response;  // none: `~ age + sex`
  Expr right;
  std::optional<Expr> group = {};  // behind a `|`: `~ age + bmi | ward`
};

// A mistake in a formula: the sentence, then the formula with the place marked.
class FormulaError : public UsageError {
 public:
  FormulaError(const Formula& formula, const Expr& at, const std::string& what);
  FormulaError(std::string_view text, std::size_t begin, std::size_t end, const std::string& what);
};

// Reads a formula. FormulaError where it is none.
Formula parse_formula(std::string_view text);

// One layout, that of R's deparse: `age:sex`, `log(bmi)`, `poly(x, 2, raw = TRUE)`. Reading it gives the same formula.
std::string to_text(const Expr& expr);
std::string to_text(const Formula& formula);

// A name as R writes it: in backticks where it is not made of letters, digits, points and underscores.
std::string quoted_name(std::string_view name);

// How long a formula may be, and how deep it may nest.
inline constexpr std::size_t longest_formula = 65536;  // bytes
inline constexpr std::size_t most_words = 5000;        // names, numbers and signs
inline constexpr std::size_t deepest_formula = 64;

}  // namespace starfold::formula
