#include "starfold/runtime/engine/chunks.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "starfold/base/error.h"
#include "starfold/base/parallel.h"
#include "starfold/base/schedule.h"
#include "starfold/ops/meaning.h"
#include "starfold/runtime/apply.h"
#include "starfold/tensor/portable.h"

namespace starfold::engine {
namespace {

// Joins the states of chunks in a fixed tree, in whatever order they come: chunk 2i with 2i + 1, and
// so on for the results.
class MergeTree {
 public:
  MergeTree(const std::vector<Merge>& merges, std::size_t leaves)
      : merges_(merges), widths_{leaves} {
    while (widths_.back() > 1) widths_.push_back((widths_.back() + 1) / 2);
  }

  void add(std::size_t leaf, std::vector<MergeState> states) {
    schedule_point();
    const std::lock_guard lock(mutex_);
    std::size_t index = leaf;
    for (std::size_t level = 0; level + 1 < widths_.size(); ++level, index /= 2) {
      const std::size_t sibling = index ^ 1;
      if (sibling >= widths_[level]) continue;
      const auto other = waiting_.find({level, sibling});
      if (other == waiting_.end()) {
        waiting_.emplace(std::pair(level, index), std::move(states));
        return;
      }
      if (index > sibling) states.swap(other->second);  // the left one takes in the right one
      for (std::size_t i = 0; i < merges_.size(); ++i)
        merges_[i].monoid->merge(states[i], other->second[i]);
      waiting_.erase(other);
    }
    result_ = std::move(states);
  }

  std::vector<MergeState> take() { return std::move(result_); }

 private:
  const std::vector<Merge>& merges_;
  std::vector<std::size_t> widths_;  // nodes per level
  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<MergeState>> waiting_;
  std::vector<MergeState> result_;
};

// The sum of what the chunks of a client found outside.
class AllOutside {
 public:
  void add(const Outside& found) {
    const std::lock_guard lock(mutex_);
    for (const auto& [node, count] : found) all_[node] += count;
  }
  const Outside& all() const { return all_; }

 private:
  std::mutex mutex_;
  Outside all_;
};

// So many blocks before it is needed a small one is asked for: memory takes about as long as a few small clients, and what lies between must
// not drive it out of the cache again.
std::size_t blocks_ahead(const Call& call) {
  constexpr std::size_t most = 4;
  constexpr std::size_t numbers = 16384;
  const std::size_t block = call.program.columns_read * call.cut.stride;
  return std::clamp<std::size_t>(numbers / std::max<std::size_t>(block, 1), 1, most);
}

// One call while it runs.
class Folding {
 public:
  explicit Folding(const Call& call) : call_(call), ahead_(blocks_ahead(call)) {}

  void into(std::vector<MergeState>& states) {
    if (call_.cut.chunks == 1 && !call_.plan.exact && !reads()) {
      fold_one_chunk(states);
    } else {
      const std::vector<MergeState> folded = call_.plan.exact ? fold_exactly() : fold_chunks();
      for (std::size_t i = 0; i < call_.work.ours.size(); ++i) {
        if (call_.work.ours[i]) states[i] = folded[i];
      }
    }
    check_outside(call_.plan.program, call_.sizes, outside_.all());
  }

  void each(std::size_t first, std::size_t last, const Engine::Turns& turns,
            std::vector<MergeState>& states) {
    const std::vector<std::size_t>& blocks = call_.cut.shared->first_blocks;
    Frame* frame = nullptr;  // of those that are one chunk
    for (std::size_t share = first; share < last; ++share) {
      if (turns.begin) {
        turns.begin(share);
        make_fills(call_.work);
      }
      if (blocks[share] == blocks[share + 1]) {
        take_zeros(call_.work, states);
      } else if (call_.plan.exact || blocks[share + 1] - blocks[share] > Cut::least_blocks) {
        fold_alone(share, states);
        frame = nullptr;
      } else {
        if (frame == nullptr) frame = &frame_again();
        fold_blocks(blocks[share], blocks[share + 1], *frame, states);
      }
      turns.end(share, states);
    }
  }

 private:
  // A table on its way: one block at a time.
  struct Reading {
    std::unique_ptr<RecordCursor> cursor;
    Buffer block;
  };

  bool reads() const { return is_read(call_.table); }

  // Most rounds of most clients: no thread, no tree, and the memory of the last time.
  void fold_one_chunk(std::vector<MergeState>& states) {
    fold_blocks(0, call_.cut.blocks, frame_again(), states);
  }

  // The frame of the last time.
  Frame& frame_again() {
    std::optional<Frame>& frame = call_.work.frame;
    if (frame) {
      prepare_frame(*frame);
    } else {
      frame = start();
    }
    return *frame;
  }

  // Blocks that are one chunk.
  void fold_blocks(std::size_t first, std::size_t last, Frame& frame,
                   std::vector<MergeState>& states) {
    const Work& work = call_.work;
    try {
      for (std::size_t b = first; b < last; ++b) run_block(b, nullptr, frame);
      check_outside(call_.plan.program, call_.sizes, frame.outside);
    } catch (...) {
      call_.work.frame.reset();  // what it has folded belongs to nobody
      throw;
    }
    for (std::size_t i = 0; i < work.ours.size(); ++i) {
      if (!work.ours[i]) continue;
      std::unique_ptr<Accumulator>& accumulator = frame.accumulators[i];
      accumulator->finish(states[i]);
      if (!accumulator->restart()) accumulator = accumulator_for(work.round->merges[i]);
    }
  }

  // A share as if it were alone.
  void fold_alone(std::size_t share, std::vector<MergeState>& states) const {
    const Cut cut = call_.cut.of_client(share);
    const Call own{call_.plan, call_.sizes,   call_.options, call_.table,
                   call_.work, call_.program, cut,           call_.cut.shared->first_blocks[share],
                   nullptr,    call_.sinks};
    Folding(own).into(states);
  }

  std::vector<MergeState> fold_chunks() {
    MergeTree tree(call_.work.round->merges, call_.cut.chunks);
    const std::size_t threads = useful_threads();
    // Chunks go to whoever is free. A table that is read goes in as many runs as there are threads, or
    // in one when reading must begin at its beginning.
    const std::size_t runs = !reads() ? call_.cut.chunks : call_.table->seekable() ? threads : 1;
    in_parallel(runs, threads, [&](std::size_t run) {
      const std::size_t first = run * call_.cut.chunks / runs;
      const std::size_t last = (run + 1) * call_.cut.chunks / runs;
      std::optional<Reading> reading;
      if (reads()) reading = start_reading(first);
      for (std::size_t chunk = first; chunk < last; ++chunk) {
        Frame frame = start();
        run_chunk(chunk, reading ? &*reading : nullptr, frame);
        tree.add(chunk, finish(frame));
      }
    });
    return tree.take();
  }

  // Where no order of chunks shows, each thread folds all of its chunks into one state, which may be large.
  std::vector<MergeState> fold_exactly() {
    const std::size_t threads = useful_threads();
    const std::size_t runs = !reads() || call_.table->seekable() ? threads : 1;
    MergeTree tree(call_.work.round->merges, runs);
    std::atomic<std::size_t> next = 0;
    in_parallel(runs, threads, [&](std::size_t run) {
      const portable::Scope scope(true);
      Frame frame = start();
      if (reads()) {
        Reading reading = start_reading(run * call_.cut.chunks / runs);
        for (std::size_t chunk = run * call_.cut.chunks / runs;
             chunk < (run + 1) * call_.cut.chunks / runs; ++chunk)
          run_chunk(chunk, &reading, frame);
      } else {
        for (std::size_t chunk = next++; chunk < call_.cut.chunks; chunk = next++)
          run_chunk(chunk, nullptr, frame);
      }
      tree.add(run, finish(frame));
    });
    return tree.take();
  }

  // To wake a thread takes longer than some calls take altogether.
  std::size_t useful_threads() const {
    constexpr std::size_t worth_a_thread = 500'000;  // numbers to be read
    const std::size_t numbers = call_.cut.records * call_.program.columns_read;
    const auto wanted = static_cast<std::size_t>(std::max(call_.options.threads, 1));
    return std::min({wanted, call_.cut.chunks, 1 + numbers / worth_a_thread});
  }

  Reading start_reading(std::size_t chunk) const {
    const std::size_t first = chunk * call_.cut.chunk * call_.cut.block;
    return {call_.table->read(static_cast<std::int64_t>(first), call_.cut.block, call_.cut.stride),
            Buffer(call_.table->columns() * call_.cut.stride)};
  }

  // A frame that has folded nothing yet.
  Frame start() const {
    Frame frame;
    frame.program = &call_.plan.program;
    frame.sizes = &call_.sizes;
    frame.exact = call_.plan.exact;
    for (std::size_t i = 0; i < call_.work.ours.size(); ++i)
      frame.accumulators.push_back(call_.work.ours[i] ? accumulator_for(call_.work.round->merges[i])
                                                      : nullptr);
    frame.sinks.resize(call_.work.sink_columns.size());
    frame.sources.resize(engine::first_input + call_.work.set->tables.inputs.size());
    prepare_frame(frame);
    return frame;
  }

  // What changes from call to call.
  void prepare_frame(Frame& frame) const {
    // Kept from call to call: many small clients would spend their time on it otherwise.
    thread_local Workspace scratch;
    thread_local Workspace passing;  // where nothing is kept: the same of one block
    frame.sources[engine::scratch] =
        scratch.columns(call_.program.scratch_columns * call_.cut.stride);
    if (call_.kept == nullptr)
      frame.sources[engine::kept] =
          passing.columns(call_.work.set->kept_columns * call_.cut.stride);
    frame.stride = call_.cut.stride;
    frame.shared = call_.work.shared;
    frame.sources[engine::fills] = call_.work.fills.data();
    frame.outside.clear();
  }

  void run_chunk(std::size_t chunk, Reading* reading, Frame& frame) const {
    const std::size_t last = std::min((chunk + 1) * call_.cut.chunk, call_.cut.blocks);
    for (std::size_t b = chunk * call_.cut.chunk; b < last; ++b) run_block(b, reading, frame);
    schedule_point();
  }

  void run_block(std::size_t b, Reading* reading, Frame& frame) const {
    if (call_.options.stop != nullptr && *call_.options.stop) throw RunError("the run was stopped");
    const std::size_t place = call_.first + b;  // of the block in the arrays
    frame.records = call_.cut.length(b);
    if (call_.kept != nullptr)
      frame.sources[engine::kept] =
          call_.kept + place * call_.work.set->kept_columns * call_.cut.stride;
    if (reading != nullptr) reading->cursor->next(reading->block.data());
    for (std::size_t i = 0; i < frame.sinks.size(); ++i) {
      if (call_.work.sink_columns[i] > 0)
        frame.sinks[i] =
            (*call_.sinks)[i]->data() + place * call_.work.sink_columns[i] * call_.cut.stride;
    }
    for (std::size_t i = 0; i < call_.work.arrays.size(); ++i) {
      frame.sources[engine::first_input + i] = input_block(i, place, reading);
    }
    const bool more = reading == nullptr && place + ahead_ < call_.work.place->all.blocks;
    if (more) expect(place + ahead_, 0);
    engine::run(call_.program, frame);
    if (more) expect(place + ahead_, 1);
  }

  // A block that will be asked for soon. Small ones, of many clients, are done before the processor sees by itself that memory is
  // read in order. Inlined by force: to the compiler a call that only prefetches does nothing, and it leaves such calls out.
  [[gnu::always_inline]] void expect(std::size_t b, std::size_t half) const {
    constexpr std::size_t small = 1024;  // numbers of one input
    constexpr std::size_t line = 8;
    for (std::size_t i = 0; i < call_.work.arrays.size(); ++i) {
      const std::size_t numbers = call_.work.set->tables.input_columns[i] * call_.cut.stride;
      if (!call_.work.arrays[i] || numbers > small) continue;
      const double* const block = call_.work.arrays[i]->data() + b * numbers;
      for (std::size_t n = half * line; n < numbers; n += 2 * line)
        __builtin_prefetch(block + n, 0, 2);
    }
  }

  // What a frame has folded.
  std::vector<MergeState> finish(Frame& frame) {
    std::vector<MergeState> states = call_.work.zeros;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (frame.accumulators[i]) frame.accumulators[i]->finish(states[i]);
    }
    if (!frame.outside.empty()) outside_.add(frame.outside);
    return states;
  }

  std::unique_ptr<Accumulator> accumulator_for(const Merge& merge) const {
    const Shape shape = cell_shape(call_.plan.program.graph[merge.fold].type(), call_.sizes);
    return accumulator_kind(*merge.monoid).make(*merge.monoid, shape);
  }

  // The first column of an input in a block.
  double* input_block(std::size_t index, std::size_t b, Reading* reading) const {
    if (const Array& array = call_.work.arrays[index])
      return array->data() + b * call_.work.set->tables.input_columns[index] * call_.cut.stride;
    const double* block = reading != nullptr ? reading->block.data() : call_.table->kept(b);
    return const_cast<double*>(block) + call_.work.table_columns[index] * call_.cut.stride;
  }

  const Call& call_;
  const std::size_t ahead_;
  AllOutside outside_;
};

}  // namespace

void fold(const Call& call, std::vector<MergeState>& states) { Folding(call).into(states); }

void fold_each(const Call& call, std::size_t first, std::size_t last, const Engine::Turns& turns,
               std::vector<MergeState>& states) {
  Folding(call).each(first, last, turns, states);
}

void take_zeros(const Work& work, std::vector<MergeState>& states) {
  for (std::size_t i = 0; i < work.ours.size(); ++i) {
    if (work.ours[i]) states[i] = work.zeros[i];
  }
}

void make_fills(Work& work) {
  const std::size_t stride = work.place->all.stride;
  const std::vector<Tables::Fill>& fills = work.set->tables.fills;
  work.fills.reserve(fills.size() * stride);
  for (std::size_t i = 0; i < fills.size(); ++i)
    std::fill_n(work.fills.data() + i * stride, stride,
                work.shared[fills[i].shared]->data[fills[i].entry]);
}

void check_outside(const ir::Program& program, const SizeValues& sizes, const Outside& outside) {
  if (outside.empty()) return;
  const auto [id, count] = *outside.begin();
  const ir::Node& node = program.graph[id];
  const bool table = node.args.size() == 2;
  const RunError error =
      table ? meaning::indices_outside(
                  count, cell_shape(program.graph[node.args[0]].type(), sizes).front())
            : meaning::labels_outside(count, cell_shape(node.type(), sizes).back());
  throw RunError(error.what(), node.span);
}

}  // namespace starfold::engine
