// Running a block program on one block of records.
#pragma once

#include <vector>

#include "starfold/runtime/engine_program.h"
#include "starfold/runtime/monoid.h"

namespace starfold::engine {

// What the steps of a block program see.
struct Frame {
  const ir::Program* program = nullptr;
  const SizeValues* sizes = nullptr;
  std::size_t records = 0;
  std::size_t stride = 0;             // from one column to the next
  std::vector<double*> sources;       // the first column of each source
  std::vector<const Tensor*> shared;  // the shared values
  MergeState* states = nullptr;       // of the round's merges: what this chunk of blocks has folded
  MergeState* block_states = nullptr;  // room for what one block folds
  double* accumulators = nullptr;
  std::vector<const double*> pointers;  // room for lists of columns
  std::vector<std::uint32_t> rows;      // room for a number per record

  double* column(const Column& c) const { return sources[c.source] + c.index * stride; }
};

// All steps on the block that the frame shows.
void run(const BlockProgram& program, Frame& frame);

// After the last block of a chunk: what is still in accumulators goes to the states.
void finish_chunk(const BlockProgram& program, Frame& frame);

}  // namespace starfold::engine
