// Everything an editor asks about one version of a program, found out once.
#pragma once

#include <string>
#include <vector>

#include "starfold/check/name_index.h"
#include "starfold/compile/compile.h"
#include "starfold/editor/text.h"

namespace starfold::editor {

// One value that leaves the clients, and the text that makes it leave.
struct Exposure {
  Span span;
  int round = 0;          // from 1
  bool repeated = false;  // in every iteration of a loop
  std::string expression;
  std::string shape;
  std::string merge;
  std::string shows;   // what it shows of single records, in a few words
  std::string reason;  // and why
};

struct Analysis {
  Compilation compilation;  // file 0 is the document
  NameIndex names;
  std::vector<Span>
      statements;  // without loops and functions around others, in the order of the text
  std::vector<Span> functions;      // from their names to their ends
  bool planned = false;             // without errors, so that what leaves is known
  std::vector<Exposure> exposures;  // in the order of the text

  std::string_view text() const { return compilation.sources[0].text(); }
};

// Checks and plans one version of a program. Never throws on input.
Analysis analyze(std::string name, std::string text, ModuleLoader load);

// The definition whose name stands there; null when there is none.
const Definition* definition_at(const Analysis& analysis, Span span);
// The definition that the name at a byte of the document stands for, or defines. `span` is then that of the name.
const Definition* definition_of(const Analysis& analysis, std::uint32_t offset, Span& span);
// The operation, call or name at a byte of the document, with its type; null when there is none.
const TypedWord* word_at(const Analysis& analysis, std::uint32_t offset);
// What leaves the clients in the statement around a byte of the document.
std::vector<const Exposure*> exposures_in_statement(const Analysis& analysis, std::uint32_t offset);
// The comment that stands directly above a line, without its signs; empty when there is none.
std::string comment_above(std::string_view text, std::uint32_t offset);
// A piece of text on one line.
std::string on_one_line(std::string_view text);

}  // namespace starfold::editor
