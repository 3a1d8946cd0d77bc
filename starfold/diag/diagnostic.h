// What the compiler says to a user: a named, located message with a reason and a way out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starfold/base/source.h"

namespace starfold {

enum class Severity { error, warning };

// Every diagnostic has a name; its stable code ("E0301") is a row of codes.def.
enum class Code {
#define STARFOLD_CODE(code, severity, name, meaning) name,
#include "starfold/diag/codes.def"
#undef STARFOLD_CODE
};

// One row of the registry.
struct CodeInfo {
  Code code;
  std::string_view id;
  Severity severity;
  std::string_view meaning;
};

// All rows, in the order of codes.def.
const std::vector<CodeInfo>& all_codes();
const CodeInfo& info(Code code);

// A place in the text and what is to be said about it.
struct Label {
  Span span;
  std::string text;
};

struct Diagnostic {
  Code code;
  std::string message;        // what was seen, in one line
  Label primary;              // the exact span, with the types involved
  std::vector<Label> others;  // where the other side comes from
  std::string reason;         // why the rule exists, one sentence; may be empty
  std::string help;           // what would fix it; may be empty
};

// Collects diagnostics; at most `limit` are kept so that a hostile file cannot flood its reader.
// Errors come before warnings when not all are kept.
class Diagnostics {
 public:
  static constexpr std::size_t limit = 100;

  void report(Diagnostic diagnostic);
  bool has_errors() const { return errors_ > 0; }
  std::size_t error_count() const { return errors_; }
  const std::vector<Diagnostic>& items() const { return items_; }
  // Nothing more of what may come would be kept, but for an error in the place of a warning.
  bool full() const { return items_.size() >= limit; }
  // How many were not kept.
  std::size_t dropped() const { return dropped_; }
  // Puts the diagnostics into the order of the text.
  void sort();

 private:
  std::vector<Diagnostic> items_;
  std::size_t errors_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace starfold
