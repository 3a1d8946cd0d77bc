// Running a block program on one block of records.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "starfold/runtime/accumulate/accumulator.h"
#include "starfold/runtime/steps/program.h"

namespace starfold::engine {

// How many labels of a one_hot, or indices of a table, point to nothing, by the node that uses them. A
// client is refused after its last block, so that the count is of all its records.
using Outside = std::map<ir::NodeId, std::int64_t>;

// What the steps of a block program see.
struct Frame {
  const ir::Program* program = nullptr;
  const SizeValues* sizes = nullptr;
  bool exact = false;  // whether values are the same bits on every processor
  const std::atomic<bool>* stop =
      nullptr;  // looked at where records are clients that compute by themselves
  std::size_t records = 0;
  std::size_t stride = 0;             // from one column to the next
  std::vector<double*> sources;       // the first column of each source
  std::vector<const Tensor*> shared;  // the shared values
  std::vector<double*> sinks;         // where each stored value of this block goes
  // Of the round's merges that fold this record set: what this chunk of blocks has folded.
  std::vector<std::unique_ptr<Accumulator>> accumulators;
  std::vector<const double*> pointers;  // room for lists of columns
  std::vector<double*> results;         // and of those to be written
  std::vector<std::uint32_t> rows;      // room for a number per record
  Outside outside;

  double* column(const Column& c) const { return sources[c.source] + c.index * stride; }
  // The accumulator of a step that only sums have.
  SumAccumulator& sums(const Step& step) const {
    return static_cast<SumAccumulator&>(*accumulators[step.merge]);
  }
};

// All steps on the block that the frame shows.
void run(const BlockProgram& program, Frame& frame);

}  // namespace starfold::engine
