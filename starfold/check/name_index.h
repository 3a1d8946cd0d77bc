// What every name of a file means where it stands: what an editor asks for. Filled by the checker.
#pragma once

#include <string>
#include <vector>

#include "starfold/check/check.h"
#include "starfold/types/type.h"

namespace starfold {

// Where a name gets its meaning.
struct Definition {
  enum class Kind { input, size, let, state, parameter, function, module, trace, output };
  Kind kind = Kind::let;
  std::string name;
  Span span;     // the name itself; of a module the beginning of its file
  Span says;     // the text that says what it is: of a function its header, else the name
  Span visible;  // where the name can be used; empty when nowhere by itself
  std::vector<Type>
      types;  // one; none when it is not a value, or a mistake keeps it from being known
};

// A place where a name is used, and the span of its definition.
struct Use {
  Span span;
  Span definition;
};

// The types of the results of an operation, a call or a name, at the word or sign that stands for it.
struct TypedWord {
  Span span;
  std::vector<Type> types;
};

// Uses and typed words are those of the file that was checked, in the order of the text and each once; definitions are also
// the functions of the modules it reaches.
struct NameIndex {
  std::vector<Definition> definitions;
  std::vector<Use> uses;
  std::vector<TypedWord> words;
  bool complete = false;  // all of the text could be read
};

// As check, and fills the index. What a function of a module does is then placed at its call in the program.
ir::Program check(SourceMap& sources, const ast::File& file, const CheckOptions& options,
                  Diagnostics& diagnostics, NameIndex& names);

}  // namespace starfold
