// The signature: one row per primitive. Checker, evaluator, engine, planner and docs read it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/diag/diagnostic.h"
#include "starfold/merge/monoid.h"
#include "starfold/signature/norms.h"
#include "starfold/signature/range.h"
#include "starfold/tensor/tensor.h"
#include "starfold/types/type.h"

namespace starfold {

struct Op;
namespace diff {
class Pullback;
}
namespace ir {
class Builder;
struct Node;
}  // namespace ir

// The families of def:base-primitive-signature, then the two kinds of conservative extension
// (prop:conservative-signature-extensions), then differentiation, which becomes the others.
enum class Family {
  unary,            // U
  binary,           // B
  comparison,       // G
  aggregation,      // A
  permutation,      // P
  matmul,           // MatMul
  client_local,     // extension: federated in, federated out
  shared_only,      // extension: shared in, shared out
  differentiation,  // grad, jacobian, hessian
};
std::string_view to_string(Family family);

// One position of an index expression with its sizes resolved; positions count from 1.
struct Slice {
  enum class Kind { all, index, range, new_axis };
  Kind kind = Kind::all;
  Size first;
  Size last;
  friend bool operator==(const Slice&, const Slice&) = default;
};

// What an application carries besides its operands, known before the run.
struct Attrs {
  std::vector<std::int64_t> axes;  // counted from 0
  std::vector<Size> sizes;
  std::vector<Slice> slices;
  friend bool operator==(const Attrs&, const Attrs&) = default;
};

// An axis as the user wrote it inside op[...].
struct WrittenAxis {
  bool star = false;
  std::string record_set;
  std::int64_t number = 0;
  Span span;
};

// What a typing rule sees of an application, and where it writes its findings.
struct TypeQuery {
  const Op& op;
  std::vector<Type> args;
  std::vector<Span> arg_spans;
  std::vector<std::string> arg_texts;            // the operands as written, for messages
  std::optional<std::vector<WrittenAxis>> axes;  // nullopt: none were written
  std::vector<Span> slice_spans;                 // of attrs.slices
  Span span;                                     // the whole application
  Attrs attrs;                                   // in: sizes, slices; out: resolved axes
  Diagnostics& diagnostics;
  std::function<std::optional<Label>(const Size&)> size_origin;  // where a size was introduced

  // Reports and lets the rule `return query.fail(...)`.
  std::nullopt_t fail(Diagnostic diagnostic) {
    diagnostics.report(std::move(diagnostic));
    return std::nullopt;
  }
};
// The types of the results, or nullopt after a report.
using Types = std::optional<std::vector<Type>>;
using TypeRule = std::function<Types(TypeQuery&)>;

// One position of an index expression with numbers for sizes; positions count from 1.
struct ConcreteSlice {
  Slice::Kind kind = Slice::Kind::all;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// An application on ordinary tensors: F^ord, with all sizes known.
struct Application {
  std::vector<const Tensor*> args;
  std::vector<std::optional<std::size_t>> record_axes;  // of each argument; nullopt: shared
  std::vector<std::int64_t> axes;                       // counted from 0
  std::vector<std::int64_t> sizes;
  std::vector<ConcreteSlice> slices;

  const Tensor& arg(std::size_t i) const { return *args[i]; }
  bool federated() const {
    for (const auto& axis : record_axes) {
      if (axis) return true;
    }
    return false;
  }
};
using Meaning = std::function<std::vector<Tensor>(const Application&)>;

// From the adjoint of a result to the adjoints of its operands (ops/derivative.h).
using DerivativeRule = void (*)(diff::Pullback&);

// The same value by other operations, for a fold of the record axis that needs no merge of its own: mean is sum /
// count. Gets the node and a builder for what it becomes; the node is not in the graph yet.
using Lowering = std::uint32_t (*)(ir::Builder&, const ir::Node&);

// A sum over records (`sum` or `@`) whose terms say how much of a number is each record's own.
struct Rest {
  std::uint32_t sum = 0;
  // Whether the terms are what the program adds up, so that the records which a condition leaves out matter as well.
  bool chosen = false;
  // Whether some record has a term wherever the number is not that of no records.
  bool always = false;
  int turn = 0;  // it counts where no record has a term in those of earlier turns
};

// What each part of a fold's state rests on. Gets the fold, a builder for the sums, and a node for each part of the state
// that a client made of its own records.
using SupportRule = std::vector<std::vector<Rest>> (*)(ir::Builder&, const ir::Node& fold,
                                                       std::span<const std::uint32_t> state);

// How the engine computes an application on columns of records (runtime/engine_values.cpp). What has no kernel
// of its own is computed by its meaning, block by block.
enum class Kernel {
  general,
  unary,     // map1, entry by entry
  binary,    // map2
  ternary,   // the ternary map of the operation's name
  view,      // names other columns; nothing is computed
  constant,  // `fill` for every record
  count,     // the number of elements along the folded axes
  join,      // columns joined by the binary map `join`
  mean,      // and divided by their number
  argmax,    // lines of columns
  logsumexp,
  softmax,
  log_softmax,
  outer,
  one_hot,
  matmul,
  clip_norm,
  lookup,
};

// How an application is written.
enum class Notation {
  call,       // name(a, b)
  infix,      // a + b
  prefix,     // -a
  slices,     // a[:, 2]
  lookup,     // a[b]
  list,       // [a, b]
  transpose,  // a' where it swaps the axes of a matrix, else a call
};

// Where a result is linear in its operands, up to a constant.
enum class Linear {
  no,
  jointly,  // in all of them together: a + b
  singly,   // in each while the others stay: a * b
  first,    // in the first while the others stay: a / b
};

// How the names of the entries along axes pass from operands to results (page/labels.cpp).
enum class Naming {
  usual,      // as the family has it: entries joined by broadcasting, folded, permuted, contracted
  none,       // the result is a number
  listed,     // as `named_as` lists
  sorted,     // along the last axis an order of its own
  lookup,     // the rows of the first operand that the second says
  slices,     // what the slices leave
  joined,     // one after the other along the axis
  variables,  // the axes that the fold leaves of the first operand and of the last
};

// One primitive.
struct Op {
  std::string name;
  Family family = Family::unary;
  int min_args = 1;
  int max_args = 1;  // -1: any number
  enum class Axes { none, optional, required } axes = Axes::none;
  int first_size_arg = -1;  // from this argument on, arguments are sizes; -1: none are

  std::string surface;  // how it is written
  Notation notation = Notation::call;
  int binding = 10;  // how tightly, from `or` (1) to `^` (8); 10: it has brackets
  std::string rule;  // its typing rule in one line
  std::string doc;   // what it means in one line

  TypeRule type;
  Meaning meaning;                           // on ordinary tensors
  double (*map1)(double) = nullptr;          // U: the scalar map
  double (*map2)(double, double) = nullptr;  // B, G: the scalar map
  // A, MatMul: the merge along the record axis; null marks a holistic aggregation, which has none.
  const Monoid* monoid = nullptr;
  Lowering lowering = nullptr;  // A: of a fold of the record axis; null: it merges as it is
  Lowering in_sums =
      nullptr;  // A: the same where messages must add up (masks, noise); null: it does, or cannot
  SupportRule support = nullptr;  // of a fold that merges; null: a careful client sends none

  Kernel kernel = Kernel::general;
  std::string_view join;       // Kernel::join and mean: the binary map that joins two columns
  bool cheap = false;          // about as fast as reading its operands
  bool truth = false;          // every entry of the result is 0 or 1
  std::optional<double> fill;  // every entry of the result, whatever the operands hold
  bool shape_only = false;     // nothing but the shapes of its operands matters
  bool refuses = false;        // some operands are an error of the run: labels outside, singular
  Linear linear = Linear::no;
  Naming naming = Naming::usual;
  // Naming::listed, per result and axis: an axis of the operand, or -1 for an order of its own.
  std::vector<std::vector<int>> named_as;
  int order = 0;             // differentiation: how often
  RangeRule range;           // of the entries of the (first) result; empty: nothing is known
  NormRule norms = nullptr;  // of a cell of the (first) result; null: what the range says
  bool clips = false;  // moves its first operand within bounds: what contributions are bounded by
  bool standard = false;  // of the contract, not a user's that may have the same name elsewhere

  // Whether small changes of operand i never change the result: its derivative is zero everywhere.
  bool flat_in(std::size_t i) const { return i < 32 && (flat >> i & 1U) != 0; }
  std::uint32_t flat = 0;               // one bit per operand
  DerivativeRule derivative = nullptr;  // in the other operands; null: there is none
};

// An ordered set of primitives; names may repeat when the number of arguments tells them apart.
class Signature {
 public:
  Signature() = default;
  explicit Signature(std::vector<Op> rows);

  // Adds a client-local primitive. Its rule and meaning speak of one record at a time: the shapes
  // and values of the operands' cells. So its result on a federated operand is federated by
  // construction; no registration can open a new way from federated to shared.
  struct ClientLocal {
    std::string name;
    int arity = 1;
    std::string doc;
    // The shape of a cell of the result, from the shapes of the operands' cells; nullopt: refuse.
    std::function<std::optional<std::vector<Size>>(std::span<const std::vector<Size>>)> cell_shape;
    // The value of a cell of the result.
    std::function<Tensor(std::span<const Tensor>)> cell_value;
  };
  void add(ClientLocal primitive);

  // Adds a shared-only primitive; federated operands are refused before `type` is asked.
  struct SharedOnly {
    std::string name;
    int arity = 1;
    std::string doc;
    std::function<std::optional<std::vector<Size>>(std::span<const std::vector<Size>>)> shape;
    std::function<Tensor(std::span<const Tensor>)> value;
  };
  void add(SharedOnly primitive);

  // The primitive for this name, number of arguments and presence of axes; null when there is none.
  const Op* find(std::string_view name, int arity, bool axes) const;
  // Any primitive of this name; null when there is none.
  const Op* find(std::string_view name) const;
  const std::vector<std::shared_ptr<const Op>>& ops() const { return ops_; }

 private:
  void add_row(Op op);
  std::vector<std::shared_ptr<const Op>> ops_;
  std::map<std::string, std::vector<const Op*>, std::less<>> by_name_;
};

}  // namespace starfold
