// A formula as text, by the layout of R's deparse: names of coefficients are made of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "starfold/formula/formula.h"
#include "starfold/formula/lexer.h"

namespace starfold::formula {
namespace {

// The fewest digits, at most fifteen, that give the number; in the shorter of the two notations, as R does.
std::string number_text(double value) {
  if (value == 0) return "0";
  constexpr int most = 15;
  const double rounded = std::strtod(fmt::format("{:.{}e}", value, most - 1).c_str(), nullptr);
  int digits = 1;
  std::string scientific;
  for (; digits <= most; ++digits) {
    scientific = fmt::format("{:.{}e}", value, digits - 1);
    if (std::strtod(scientific.c_str(), nullptr) == rounded) break;
  }
  digits = std::min(digits, most);
  const int exponent = std::atoi(scientific.substr(scientific.find('e') + 1).c_str());
  const int decimals = std::max(0, digits - 1 - exponent);
  const std::string fixed = fmt::format("{:.{}f}", value, decimals);
  return fixed.size() <= scientific.size() ? fixed : scientific;
}

std::string string_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

bool is_sign(const std::string& function) {
  static constexpr std::string_view signs[] = {
      "+", "-", "*",  "/",  "^",  ":",  "%%", "%/%", "%in%",
      "<", ">", "<=", ">=", "==", "!=", "&",  "|",   "!"};
  return std::find(std::begin(signs), std::end(signs), function) != std::end(signs);
}

std::string call_text(const Expr& expr) {
  const std::string& function = expr.text;
  if (function == "(") return "(" + to_text(expr.args[0]) + ")";
  if (is_sign(function) && expr.args.size() == 1) return function + to_text(expr.args[0]);
  if (is_sign(function) && expr.args.size() == 2) {
    const bool close = function == "^" || function == ":" || function == "/" || function == "%%" ||
                       function == "%/%";
    return to_text(expr.args[0]) + (close ? function : " " + function + " ") +
           to_text(expr.args[1]);
  }
  std::string list;
  for (const Expr& arg : expr.args) list += (list.empty() ? "" : ", ") + to_text(arg);
  return quoted_name(function) + "(" + list + ")";
}

}  // namespace

std::string quoted_name(std::string_view name) {
  if (is_plain_name(name)) return std::string(name);
  std::string result = "`";
  for (const char c : name) {
    if (c == '`' || c == '\\') result += '\\';
    result += c;
  }
  return result + "`";
}

std::string to_text(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::number:
      return number_text(expr.value);
    case Expr::Kind::text:
      return string_text(expr.text);
    case Expr::Kind::name:
      return expr.text == "." || expr.text == "TRUE" || expr.text == "FALSE"
                 ? expr.text
                 : quoted_name(expr.text);
    case Expr::Kind::named:
      return quoted_name(expr.text) + " = " + to_text(expr.args[0]);
    case Expr::Kind::call:
      return call_text(expr);
  }
  return {};
}

std::string to_text(const Formula& formula) {
  return (formula.response ? to_text(*formula.response) + " ~ " : "~") + to_text(formula.right) +
         (formula.group ? " | " + to_text(*formula.group) : "");
}

}  // namespace starfold::formula
