// Norms: how large a record's whole cell can be, beside where each of its entries lies (range.h). What one record
// adds to a sum is bounded by them, and with that what the sum tells about the record.
//
// As ranges do, they speak of cells whose entries are numbers, and may be too large, never too small.
#pragma once

#include <functional>
#include <span>

#include "starfold/signature/range.h"
#include "starfold/tensor/tensor.h"
#include "starfold/types/bound.h"
#include "starfold/types/type.h"

namespace starfold {

struct Attrs;

// Bounds on the sum of magnitudes, the root of the sum of squares, and the largest magnitude of a cell's entries.
struct Norms {
  Bound l1;
  Bound l2;
  Bound linf;

  bool finite() const { return l1.finite() && l2.finite() && linf.finite(); }
};

// Where each entry of a cell lies. As many axes as the type has; along each, all entries alike (1, also for the star)
// or one by one.
struct Box {
  Tensor lo = Tensor::scalar(-std::numeric_limits<double>::infinity());
  Tensor hi = Tensor::scalar(std::numeric_limits<double>::infinity());

  // The same for every entry.
  static Box all(Interval entries, std::size_t rank);
  Interval at(std::size_t i) const { return {lo.data[i], hi.data[i]}; }
  // Where all entries lie.
  Interval hull() const;
};

// What is known of a cell: of each record's, or of a shared value as a whole.
struct CellBound {
  Box box;
  Norms norms;

  bool bounded() const { return norms.finite(); }
};

// What a norm rule sees of an application.
struct NormQuery {
  std::span<const CellBound> operands;
  std::span<const Type> types;  // of the operands
  const Type& type;             // of the result
  const Attrs& attrs;
  const SizeValues& sizes;  // that are known

  const Norms& norms(std::size_t i) const { return operands[i].norms; }
  // How many entries a cell of this type has; the star has one record.
  Bound entries(const Type& of) const;
  // How often broadcasting repeats each entry of operand i.
  Bound repeats(std::size_t i) const;
  // The norms of operand i as it takes part in broadcasting.
  Norms stretched(std::size_t i) const;
  // How many entries of operand 0 make one of the result, along the axes of an aggregation.
  Bound folded() const;
};

// Bounds on the norms of the (first) result's cell. The analysis adds what the ranges of its entries say.
using NormRule = Norms (*)(const NormQuery&);

// The tightest of what two rules say.
Norms tighter(const Norms& a, const Norms& b);
// What each norm says of the others, for a cell of so many entries.
Norms related(Norms norms, const Bound& entries);
// What the ranges of entries say of norms, for a cell of this type.
Norms norms_of(const Box& box, const Type& type, const SizeValues& sizes);

namespace norms {

// No entry is larger than the first operand's at its place.
Norms no_larger(const NormQuery& q);
// Entries of the operand at other places, some of them; joined: of all operands, each once.
Norms selected(const NormQuery& q);
Norms joined(const NormQuery& q);

Norms plus(const NormQuery& q);
Norms times(const NormQuery& q);
Norms over(const NormQuery& q);
Norms power(const NormQuery& q);
// Each entry is one of the operands' entries: of the first two, or of the last two by the first.
Norms either(const NormQuery& q);
Norms where(const NormQuery& q);
Norms clip(const NormQuery& q);
Norms clip_norm(const NormQuery& q);
Norms square(const NormQuery& q);
Norms root(const NormQuery& q);
Norms outer(const NormQuery& q);
Norms matmul(const NormQuery& q);
Norms one_hot(const NormQuery& q);
Norms softmax(const NormQuery& q);
Norms lookup(const NormQuery& q);
// Folds of ordinary axes.
Norms sum(const NormQuery& q);
Norms mean(const NormQuery& q);
Norms norm(const NormQuery& q);
// eye(n)
Norms identity(const NormQuery& q);

}  // namespace norms
}  // namespace starfold
