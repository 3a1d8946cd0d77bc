// The typing rules once more, read off the paper's appendix (def:typing-unary to
// def:typing-fed-fed-matmul) and the language's reference, and written over the syntax tree. It shares
// nothing with the checker but the parser, so that the two can be held against each other.
#pragma once

#include <string>

namespace starfold::laws {

enum class Judgement {
  accepted,
  rejected,
  beyond,  // the program says something that the oracle has no rule for
};

// Whether a program is well-typed; `why` says what is wrong with it.
Judgement judge(const std::string& text, std::string* why = nullptr);

}  // namespace starfold::laws
