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
#include "starfold/runtime/tensor.h"
#include "starfold/types/type.h"

namespace starfold {

struct Op;
namespace diff {
class Pullback;
}

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

// How partial results along the record axis merge: the commutative monoids of
// def:shared-state-factorization. `none` marks a holistic aggregation.
enum class Monoid { none, sum, prod, min, max, count, any, all, moments, logsumexp };
std::string_view to_string(Monoid monoid);

// One primitive.
struct Op {
  std::string name;
  Family family = Family::unary;
  int min_args = 1;
  int max_args = 1;  // -1: any number
  enum class Axes { none, optional, required } axes = Axes::none;
  int first_size_arg = -1;  // from this argument on, arguments are sizes; -1: none are

  std::string surface;  // how it is written
  std::string rule;     // its typing rule in one line
  std::string doc;      // what it means in one line

  TypeRule type;
  Meaning meaning;                                    // on ordinary tensors
  double (*map1)(double) = nullptr;                   // U: the scalar map
  double (*map2)(double, double) = nullptr;           // B, G: the scalar map
  double (*fold)(std::span<const double>) = nullptr;  // A: alpha_n, for every n including 0
  Monoid monoid = Monoid::none;                       // A: the merge along the record axis

  // Whether small changes of operand i never change the result: its derivative is zero everywhere.
  bool flat_in(std::size_t i) const { return i < 32 && (flat >> i & 1U) != 0; }
  std::uint32_t flat = 0;  // one bit per operand
  DerivativeRule derivative = nullptr;  // in the other operands; null: there is none
};

// An ordered set of primitives; names may repeat when the number of arguments tells them apart.
class Signature {
 public:
  // The contract's operations.
  static const Signature& standard();

  Signature() = default;

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
  friend Signature make_standard_signature();
  void add_row(Op op);
  std::vector<std::shared_ptr<const Op>> ops_;
  std::map<std::string, std::vector<const Op*>, std::less<>> by_name_;
};

// The rows of each family; one file each.
std::vector<Op> unary_ops();
std::vector<Op> binary_ops();  // B and G
std::vector<Op> aggregation_ops();
std::vector<Op> structure_ops();  // P, MatMul, indexing and the like
std::vector<Op> client_local_ops();
std::vector<Op> linear_algebra_ops();
std::vector<Op> construction_ops();  // zeros, eye, normal, ...
std::vector<Op> distribution_ops();
std::vector<Op> differentiation_ops();

}  // namespace starfold
