// One record set of a round through its block program, chunk by chunk. Which chunks there are does not depend on threads, and
// their states are joined in a fixed order, so the bits do not either.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "starfold/plan/plan.h"
#include "starfold/runtime/engine/blocks.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/steps/program.h"
#include "starfold/runtime/steps/run.h"

namespace starfold::engine {

// What the stores of a round lay down; null: not computed.
using Sinks = std::vector<std::shared_ptr<Buffer>>;

// A program of one record set with what all calls of it have in common, and memory for the next.
struct Work {
  const Round* round = nullptr;
  const SetProgram* set = nullptr;
  const Place* place = nullptr;
  Tensor numbers;
  std::vector<const Tensor*> constants;  // by number of the shared value; null: it is received,
  std::vector<Shape> shapes;             // and has this shape
  std::vector<MergeState> zeros;         // of each merge
  std::vector<bool> ours;                // of each merge: whether it folds this record set
  std::vector<std::size_t> sink_columns;

  std::vector<const Tensor*> shared;
  std::vector<Array> arrays;               // by input of the set; null: it lies in the table,
  std::vector<std::size_t> table_columns;  // from this column on
  std::uint64_t arrays_of = 0;             // which arrays an engine had when they were found
  Buffer fills;
  std::optional<Frame> frame;
};

// A set's program on its way through the records of a client, and what all workers share.
struct Call {
  const Plan& plan;
  const SizeValues& sizes;
  const EngineOptions& options;
  const RecordTable* table;  // null: all arrays are laid out
  Work& work;
  const BlockProgram& program;
  const Cut& cut;
  std::size_t first = 0;  // block of the arrays
  double* kept = nullptr;
  const Sinks* sinks = nullptr;
};

// Whether the table is read block by block, as it is too large to be kept.
inline bool is_read(const RecordTable* table) {
  return table != nullptr && table->kept(0) == nullptr;
}

// The states of the merges that fold this record set; those of others stay. RunError when a record's label or index is
// outside.
void fold(const Call& call, std::vector<MergeState>& states);
// The same for shares first to last - 1 of a cut of several, as Engine::encode_shares. Nothing is kept from call to call.
void fold_each(const Call& call, std::size_t first, std::size_t last, const Engine::Turns& turns,
               std::vector<MergeState>& states);

// The states of who has no records.
void take_zeros(const Work& work, std::vector<MergeState>& states);
// Shared numbers as columns.
void make_fills(Work& work);
// Throws RunError when something was outside.
void check_outside(const ir::Program& program, const SizeValues& sizes, const Outside& outside);

}  // namespace starfold::engine
