// The lexer on any bytes: tokens in order and inside the text, and a last one.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/require.h"
#include "starfold/syntax/lexer.h"

using namespace starfold;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SourceMap sources;
  sources.add("fuzz.fold", std::string(reinterpret_cast<const char*>(data), size));
  Diagnostics diagnostics;
  const Lexed lexed = lex(sources, 0, diagnostics);
  require(!lexed.tokens.empty() && lexed.tokens.back().kind == TokenKind::end_of_file);
  std::uint32_t end = 0;
  for (const Token& token : lexed.tokens) {
    require(token.begin >= end && token.end >= token.begin && token.end <= size);
    end = token.end;
  }
  end = 0;
  for (const ast::Comment& comment : lexed.comments) {
    require(comment.span.begin >= end && comment.span.end <= size);
    end = comment.span.end;
  }
  return 0;
}
