// What the blocks of a chunk have folded so far, for one merge of a round. The steps of a block program hand
// columns to an accumulator and never see what it keeps: doubles here, integers or bins in another. It is
// chosen with the merge; a merge that has none of its own is folded by its row's definition.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "starfold/merge/monoid.h"

namespace starfold::engine {

class Accumulator {
 public:
  virtual ~Accumulator() = default;

  // The first n numbers of each of `count` columns are one sample, folded into entry `place` of the result.
  virtual void sample(const double* const* columns, std::size_t count, std::size_t n,
                      std::size_t place) = 0;
  // All columns of the operands at once, for folds whose entries are not states of their own.
  virtual void block(std::span<const std::vector<const double*>> operands, std::size_t n);
  // The operands of a block as ordinary tensors.
  virtual void records(const FoldedRecords& records);
  // n records, each with `terms` elements of every entry, whatever they hold.
  virtual void count(std::size_t n, std::size_t terms);
  // After the last sample of a block.
  virtual void end_block() {}
  // Adds what was folded to a state that holds nothing yet. Called once, at the end.
  virtual void finish(MergeState& state) = 0;
  // After that, to fold something else with the memory it has. False: another one must be made.
  virtual bool restart() { return false; }
};

// Sums also take in products without making them.
class SumAccumulator : public Accumulator {
 public:
  // Entry `place` += the sum of a * b.
  virtual void dot(const double* a, const double* b, std::size_t n, std::size_t place) = 0;
  // All sums of row i times column j, for the fold number `number` of this kind; with `upper`, rows and columns
  // are the same, and one half is enough. `places` says where each goes.
  virtual void gram(std::size_t number, std::span<const double* const> rows,
                    std::span<const double* const> columns, bool upper, std::size_t n,
                    std::span<const std::uint32_t> places) = 0;
  // The sums of each column among the records with each row number below `labels`; those with the number
  // `labels` belong to no row. places[row * columns + column] says where each goes.
  virtual void groups(std::size_t number, std::span<const std::uint32_t> rows, std::size_t labels,
                      std::span<const double* const> columns,
                      std::span<const std::uint32_t> places) = 0;
};

// How the engine accumulates for a merge.
struct AccumulatorKind {
  // What a step hands over.
  enum class Takes {
    columns,  // one column after the other: a sample may come in parts
    samples,  // all columns of an entry at once
    block,    // all columns of all operands at once
    records,  // ordinary tensors: the definition
    counts,   // only how many there are
    sums,     // columns, products, groups: a SumAccumulator
  };
  Takes takes = Takes::records;
  std::unique_ptr<Accumulator> (*make)(const Monoid& monoid, const Shape& result) = nullptr;
};

// The kind that was written for this merge, or the general one.
AccumulatorKind accumulator_kind(const Monoid& monoid);

}  // namespace starfold::engine
