// The program as written: one value per construct of the grammar, with its place in the text.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "starfold/base/source.h"

namespace starfold::ast {

struct Expr;
struct Fn;
using ExprPtr = std::unique_ptr<Expr>;

// A name and where it stands.
struct Name {
  std::string text;
  Span span;
};

// One entry of [...] after an expression or operation: `:`, `2`, `2:4`, `new`, `*`, `*visits`.
struct Subscript {
  enum class Kind { all, index, range, new_axis, star };
  Kind kind = Kind::all;
  Span span;
  ExprPtr first;           // index; lower end of a range (may be absent: from the start)
  ExprPtr last;            // upper end of a range (may be absent: to the end)
  std::string record_set;  // of a named star
};

enum class ExprKind {
  number,       // 2.5e-3, inf, nan, pi: value in `number`, spelling in `text`
  name,         // x
  unary,        // `-` or `not` in `text`, one arg
  binary,       // operator in `text` (+ - * / @ ^ and or == != < <= > >=), two args
  call,         // text(args) or text[subscripts](args); `module` for stats.cov(x)
  index,        // args[0][subscripts]
  transpose,    // args[0]'
  list,         // [a, b, c]
  tuple,        // (a, b): only as the result of a function or of each client
  each_client,  // each client { ... }: what stands between the braces is in `block`
  invalid,      // a syntax error was reported here
};

struct Expr {
  ExprKind kind = ExprKind::invalid;
  Span span;                   // of the whole expression, without enclosing parentheses
  std::string text;            // spelling, name or operator, by kind
  Span text_span;              // where `text` stands
  std::optional<Name> module;  // call: the module before the dot
  double number = 0;
  std::vector<ExprPtr> args;
  std::vector<Subscript> subscripts;  // call: the axes; index: the indices
  bool has_subscripts = false;        // call: axes were written, even if none
  bool parenthesized = false;         // the user wrote (e); kept for the formatter
  std::shared_ptr<const Fn> block;    // each client: statements and result, without a name
};

// One axis of a written type: a star, or a size as an expression.
struct Dim {
  bool star = false;
  std::string record_set;  // of a named star
  ExprPtr size;
  Span span;
};

struct TypeExpr {
  std::vector<Dim> dims;
  Span span;
  bool function = false;  // of a parameter that is called: `fn`
};

struct Stmt;
using Block = std::vector<Stmt>;

struct Import {
  Name module;
};
struct SizeDecl {
  Name name;
  ExprPtr value;  // an integer literal
};
struct Input {
  Name name;
  TypeExpr type;
  ExprPtr fallback;  // may be null
};
struct Param {
  Name name;
  TypeExpr type;
};
struct Fn {
  Name name;
  std::vector<Param> params;
  std::optional<TypeExpr> result;
  Block body;       // statements before the result; empty for `= expr`
  ExprPtr value;    // the result
  Span value_span;  // of the result, with parentheses around it
  bool braces = false;
  Span open;  // the opening and closing brace, if there are any
  Span close;
};
struct Let {
  std::vector<Name> names;  // one, or several for let (a, b) = e
  std::optional<TypeExpr> type;
  ExprPtr value;
  bool tuple = false;
};
struct State {
  Name name;
  std::optional<TypeExpr> type;
  ExprPtr value;
  bool at_client = false;  // private state: it lives at the clients
};
struct Update {
  Name name;
  ExprPtr value;
};
struct Repeat {
  ExprPtr count;  // an integer literal or a name; of batches(k, seed) the k
  Block body;
  ExprPtr until;  // may be null
  Span open;      // the opening brace
  Span close;     // the closing brace: where comments of the body end
  ExprPtr seed;   // of batches(k, seed); null for an ordinary loop
};
struct Trace {
  Name name;
  ExprPtr value;
};
// `require value, "sentence"`, or `expect` with the same: a condition, and what it means when it does not hold.
struct Demand {
  bool must = false;  // require
  ExprPtr value;
  std::string sentence;
};
struct Output {
  Name name;
  ExprPtr value;      // may be null
  bool kept = false;  // keep: it stays at each client
};

struct Stmt {
  Span span;
  std::variant<Import, SizeDecl, Input, Fn, Let, State, Update, Repeat, Trace, Demand, Output> node;
};

// A comment, kept for the formatter. `own_line`: nothing but blanks stands before it on its line.
struct Comment {
  Span span;
  bool own_line = false;
};

// A parsed file.
struct File {
  std::uint32_t id = 0;
  Block items;
  std::vector<Comment> comments;
  bool damaged = false;  // some of the text could not be read
  // Names in what could not be read: nothing is known about them, so nothing is said about them.
  std::set<std::string, std::less<>> lost;
};

}  // namespace starfold::ast
