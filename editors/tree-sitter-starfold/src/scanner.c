// Newlines that end statements. Brackets are read here too, so that it is known whether one is open.
#include "tree_sitter/parser.h"

#include <stdlib.h>
#include <string.h>

// In the order of `externals` in grammar.js.
enum Token { NEWLINE, OPEN_PAREN, CLOSE_PAREN, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE };

// The open brackets, from the outside in. Deeper ones are not kept: the parser of the language refuses them as well.
enum { DEEPEST = 900 };
typedef struct {
  unsigned size;
  char open[DEEPEST];
} Scanner;

void *tree_sitter_starfold_external_scanner_create(void) { return calloc(1, sizeof(Scanner)); }

void tree_sitter_starfold_external_scanner_destroy(void *payload) { free(payload); }

unsigned tree_sitter_starfold_external_scanner_serialize(void *payload, char *buffer) {
  const Scanner *scanner = payload;
  memcpy(buffer, scanner->open, scanner->size);
  return scanner->size;
}

void tree_sitter_starfold_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  Scanner *scanner = payload;
  scanner->size = length < DEEPEST ? length : DEEPEST;
  if (scanner->size > 0) memcpy(scanner->open, buffer, scanner->size);
}

static bool ends_statements(const Scanner *scanner) {
  return scanner->size == 0 || scanner->open[scanner->size - 1] == '{';
}

static bool bracket(Scanner *scanner, TSLexer *lexer, enum Token token, const bool *valid) {
  if (!valid[token]) return false;
  const bool opens = token == OPEN_PAREN || token == OPEN_BRACKET || token == OPEN_BRACE;
  if (opens && scanner->size == DEEPEST) return false;
  if (opens) {
    scanner->open[scanner->size++] = (char)lexer->lookahead;
  } else if (scanner->size > 0) {
    scanner->size--;
  }
  lexer->advance(lexer, false);
  lexer->result_symbol = token;
  return true;
}

bool tree_sitter_starfold_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  Scanner *scanner = payload;
  while (lexer->lookahead == ' ' || lexer->lookahead == '\t' || lexer->lookahead == '\r') lexer->advance(lexer, true);
  if (lexer->lookahead == '\n' && valid[NEWLINE] && ends_statements(scanner)) {
    lexer->advance(lexer, false);
    lexer->result_symbol = NEWLINE;
    return true;
  }
  while (lexer->lookahead == '\n' || lexer->lookahead == ' ' || lexer->lookahead == '\t' || lexer->lookahead == '\r')
    lexer->advance(lexer, true);
  switch (lexer->lookahead) {
    case '(':
      return bracket(scanner, lexer, OPEN_PAREN, valid);
    case ')':
      return bracket(scanner, lexer, CLOSE_PAREN, valid);
    case '[':
      return bracket(scanner, lexer, OPEN_BRACKET, valid);
    case ']':
      return bracket(scanner, lexer, CLOSE_BRACKET, valid);
    case '{':
      return bracket(scanner, lexer, OPEN_BRACE, valid);
    case '}':
      return bracket(scanner, lexer, CLOSE_BRACE, valid);
    default:
      return false;
  }
}
