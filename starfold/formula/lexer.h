// The words of a formula. Private to starfold/formula.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starfold::formula {

struct Token {
  enum class Kind { number, text, name, sign, end };
  Kind kind = Kind::end;
  std::string text;  // of a name or text without its quotes; a sign as it is, `**` as `^`
  double value = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// All tokens, the last one of kind `end`. FormulaError on what is no token.
std::vector<Token> tokens_of(std::string_view formula);

// Whether R takes it for a name without backticks.
bool is_plain_name(std::string_view text);

}  // namespace starfold::formula
