// The commutative monoids (M, merge, zero) of def:shared-state-factorization. Each is one value: a row that
// says what its states are, how they merge, what comes out, and how records fold into one. Blocks, threads,
// files, clients and machines all merge through these rows; nothing else in the project knows how.
//
// A new merge is one row here, an operation that names it, and, if it should be fast, an accumulator of the
// engine. tests/laws/monoid_law_test.cpp proves the laws of every row on all of its valid states.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/tensor/tensor.h"

namespace starfold {

// An element of M: one tensor for each part of the row.
using MergeState = std::vector<Tensor>;

// What one tensor of a state holds, and how many numbers that is.
struct Part {
  // The axes of the fold's result that the part has.
  enum class Extent { one, result, first_axis, last_axis };
  std::string_view name;  // for people: "means"
  Extent extent = Extent::result;
  double zero = 0;                  // each number of the neutral element
  bool (*valid)(double) = nullptr;  // whether a number can stand here; null: any
  std::string_view otherwise = {};  // why it cannot
  // Where this is not 0, each number is an integer of so many words (merge/wide.h), which lie bit by bit in as many
  // doubles along one more axis: see merge/integers.h. `zero` and `valid` say nothing then.
  std::size_t words = 0;
};

// The sizes of a part, from those of the result: numbers of a run, or sizes of a type. An integer counts as one number.
template <typename Axis>
std::vector<Axis> extents(const Part& part, const std::vector<Axis>& result) {
  switch (part.extent) {
    case Part::Extent::one:
      return {};
    case Part::Extent::result:
      return result;
    case Part::Extent::first_axis:
      return {result.front()};
    case Part::Extent::last_axis:
      return {result.back()};
  }
  return {};
}

// A fold applied to some records: its operands as ordinary tensors with those records along their star.
struct FoldedRecords {
  std::vector<const Tensor*> operands;
  std::vector<std::size_t> record_axes;  // of each operand
  std::vector<std::int64_t>
      axes;  // of the first operand, that the fold removes; its star among them
};

struct Monoid {
  std::string_view name;   // in tables and messages
  std::string_view words;  // what happens to the clients' values, for people: "added up"
  std::vector<Part> parts;

  // Whether merging adds number to number, in every part. Only then can a state be masked or noised.
  bool additive = false;
  // Whether all parts are integers, which merging adds: they can be masked without rounding.
  bool integers = false;
  // What may be asked instead where only sums can be released, for people; empty where nothing comes close.
  std::string_view instead = {};
  // Whether merging rounds nothing, so that the laws hold to the bit.
  bool exact = false;
  // Whether a state holds a number of one record, not of all together.
  bool shows_single = false;
  // The row that this one computes exactly, and its state with the same meaning; null for rows that may round.
  const Monoid* plain = nullptr;
  MergeState (*to_plain)(const MergeState& state) = nullptr;
  // What the fold shows of values that are the same linear expression of every record; empty: more than a total.
  std::string_view total = {};
  // How a record's term enters where that is more than a total.
  std::string_view joins = "adds up";

  // into = into (+) from.
  void (*merge)(MergeState& into, const MergeState& from) = nullptr;
  // The value of the fold, from a merged state.
  Tensor (*finish)(const MergeState& state) = nullptr;
  // Why parts that are valid one by one do not belong together; empty when they do. Null: they always do.
  std::string_view (*invalid)(const MergeState& state) = nullptr;
  // Adds records to a state that holds none: the definition that every accumulator of the engine follows, and
  // what the engine does where a row has no accumulator of its own.
  void (*fold)(const FoldedRecords& records, MergeState& into) = nullptr;
};

namespace monoids {
extern const Monoid sum, prod, min, max, count, any, all, moments, logsumexp, norm;
}

// The row that people know: the one itself, or the one it computes exactly. And a state of the row as one of that.
const Monoid& plain_row(const Monoid& monoid);
MergeState plain_state(const Monoid& monoid, const MergeState& state);

// How many numbers a state holds; an integer of many words is one.
std::int64_t numbers_in(const Monoid& monoid, const MergeState& state);

// Every row that operations name; those of merge/exact.h compute the same exactly.
std::span<const Monoid* const> all_monoids();

// The shapes of a state's tensors, for a fold whose result has this shape.
std::vector<Shape> state_shapes(const Monoid& monoid, const Shape& result);

// The neutral element: what a client without records sends.
MergeState zero(const Monoid& monoid, const Shape& result);

// An empty string, or why this cannot be a state: a count that is no whole number, say.
std::string invalid_state(const Monoid& monoid, const MergeState& state, const Shape& result);

}  // namespace starfold
