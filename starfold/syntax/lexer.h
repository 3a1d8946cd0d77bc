// Text in, tokens out.
#pragma once

#include <cstddef>
#include <vector>

#include "starfold/base/source.h"
#include "starfold/diag/diagnostic.h"
#include "starfold/syntax/ast.h"
#include "starfold/syntax/token.h"

namespace starfold {

// A tree needs some fifty times the memory of its text; this bounds it.
inline constexpr std::size_t max_tokens = 1 << 20;

// Types and messages repeat names; this keeps them readable, and small.
inline constexpr std::size_t max_name_bytes = 200;

struct Lexed {
  std::vector<Token> tokens;  // the last one is end_of_file
  std::vector<ast::Comment> comments;
};

// Cuts one file into tokens. Text that cannot be a program (too large, not UTF-8) is reported once
// and yields no tokens but the last. Where a character is not of the language but its meaning is
// plain (a typographic minus), it is reported and read as meant.
Lexed lex(const SourceMap& sources, std::uint32_t file, Diagnostics& diagnostics);

}  // namespace starfold
