#include "starfold/runtime/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "starfold/base/error.h"
#include "starfold/base/parallel.h"
#include "starfold/ops/meaning.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/engine_layout.h"
#include "starfold/runtime/engine_program.h"
#include "starfold/runtime/engine_run.h"
#include "starfold/tensor/bits.h"
#include "starfold/tensor/portable.h"

namespace starfold {
namespace {

using engine::BlockProgram;
using engine::Buffer;
using engine::Cut;
using engine::Frame;
using engine::Outside;
using engine::RoundProgram;
using engine::SetProgram;
using engine::Tables;
using ir::NodeId;

// Joins the states of chunks in a fixed tree, in whatever order they come: chunk 2i with 2i + 1, and
// so on for the results.
class MergeTree {
 public:
  MergeTree(const std::vector<Merge>& merges, std::size_t leaves)
      : merges_(merges), widths_{leaves} {
    while (widths_.back() > 1) widths_.push_back((widths_.back() + 1) / 2);
  }

  void add(std::size_t leaf, std::vector<MergeState> states) {
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
  // Throws RunError when there was something.
  void check(const ir::Program& program, const SizeValues& sizes) const {
    if (all_.empty()) return;
    const auto [id, count] = *all_.begin();
    const ir::Node& node = program.graph[id];
    const bool table = node.args.size() == 2;
    const RunError error =
        table ? meaning::indices_outside(
                    count, cell_shape(program.graph[node.args[0]].type(), sizes).front())
              : meaning::labels_outside(count, cell_shape(node.type(), sizes).back());
    throw RunError(error.what(), node.span);
  }

 private:
  std::mutex mutex_;
  Outside all_;
};

}  // namespace

// ---- Encoders ----------------------------------------------------------------------------------

class Encoders::Impl {
 public:
  Impl(std::shared_ptr<const Plan> p, SizeValues s)
      : plan(std::move(p)), sizes(std::move(s)), rounds_(static_cast<std::size_t>(plan->rounds)) {}

  const RoundProgram& program(const Round& round) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<const RoundProgram>& slot = rounds_.at(static_cast<std::size_t>(round.number));
    if (!slot)
      slot = std::make_unique<const RoundProgram>(engine::compile_round(*plan, round, sizes));
    return *slot;
  }

  const std::shared_ptr<const Plan> plan;
  const SizeValues sizes;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<const RoundProgram>> rounds_;
};

Encoders::Encoders(std::shared_ptr<const Plan> plan, SizeValues sizes)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(sizes))) {}
Encoders::~Encoders() = default;

std::string Encoders::print(const Round& round) const {
  std::string text;
  for (const SetProgram& set : impl_->program(round).sets) {
    text += fmt::format("block of *{}: {} scratch columns\n{}", set.record_set,
                        set.first.scratch_columns, engine::print(*impl_->plan, set, set.first));
    if (set.kept_columns == 0) continue;
    text += fmt::format("again, with {} kept columns\n{}", set.kept_columns,
                        engine::print(*impl_->plan, set, set.again));
  }
  return text;
}

// ---- Engine ------------------------------------------------------------------------------------

class Engine::Impl {
 public:
  Impl(std::shared_ptr<const Encoders> encoders, const Client& client, EngineOptions options)
      : encoders_(std::move(encoders)), options_(options) {
    for (const auto& [record_set, count] : record_counts(program(), client)) {
      cuts_.emplace(record_set, Cut(count, options.block_records));
    }
    inputs_.resize(program().inputs.size());
    for (const Round* round : rounds_of(plan())) {
      for (const NodeId id : round->encoders) {
        const ir::Node& node = program().graph[id];
        if (node.kind != ir::Kind::input || inputs_[node.index]) continue;
        const ir::Input& input = program().inputs[node.index];
        const Cut& cut = cut_of(input.type.record_set());
        const std::size_t axis = *input.type.record_axis();
        const auto lay_out = [&](const Tensor& array) {
          inputs_[node.index] = std::make_shared<const Buffer>(
              engine::in_column_blocks(array, axis, cut, options.threads));
        };
        if (!client.table) {
          lay_out(client.arrays.at(input.name));
        } else if (usable(*client.table, cut)) {
          table_ = client.table;
        } else {
          lay_out(client.array(input));
        }
      }
    }
  }

  Impl(std::shared_ptr<const Encoders> encoders, const Impl& other, std::int64_t most)
      : encoders_(std::move(encoders)), options_(other.options_), table_(other.table_) {
    for (const auto& [record_set, cut] : other.cuts_) {
      // Whole blocks, so that they lie as they were laid out.
      const std::int64_t whole = std::max<std::int64_t>(most, options_.block_records);
      const auto count = std::min(static_cast<std::int64_t>(cut.records), whole);
      cuts_.emplace(record_set, Cut(count, options_.block_records));
    }
    for (const ir::Input& input : program().inputs) {
      inputs_.emplace_back();
      if (!input.type.federated()) continue;
      for (std::size_t i = 0; i < other.inputs_.size(); ++i) {
        const ir::Input& theirs = other.program().inputs[i];
        if (theirs.name == input.name && theirs.type == input.type)
          inputs_.back() = other.inputs_[i];
      }
    }
  }

  std::int64_t records() const {
    std::size_t most = 0;
    for (const auto& [record_set, cut] : cuts_) most = std::max(most, cut.records);
    return static_cast<std::int64_t>(most);
  }

  bool has_array(const std::string& name) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] && program().inputs[i].name == name) return true;
    }
    return false;
  }
  std::optional<Tensor> array(const std::string& name) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const ir::Input& input = program().inputs[i];
      if (input.name != name || !inputs_[i]) continue;
      const Cut& cut = cut_of(input.type.record_set());
      const std::size_t axis = *input.type.record_axis();
      Shape shape = cell_shape(input.type, sizes());
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis),
                   static_cast<std::int64_t>(cut.records));
      return engine::from_column_blocks(*inputs_[i], std::move(shape), axis, cut);
    }
    return std::nullopt;
  }

  std::vector<MergeState> encode(const Round& round, const std::map<NodeId, Tensor>& received) {
    const RoundProgram& compiled = encoders_->impl_->program(round);
    std::vector<MergeState> states = zeros(round);
    for (const SetProgram& set : compiled.sets) {
      const Cut& cut = cut_of(set.record_set);
      if (cut.records > 0) encode_set(round, compiled, set, cut, received, states);
    }
    return states;
  }

 private:
  // What was computed once for all iterations, for one record set of a round.
  struct Kept {
    Buffer columns;
    std::vector<Tensor> depends;  // the shared values it was computed with
    bool valid = false;
  };

  // Everything that the workers of one call share.
  struct Call {
    const Round& round;
    const SetProgram& set;
    const BlockProgram& program;
    const Cut& cut;
    std::vector<const Tensor*> shared;
    Buffer fills;
    double* kept = nullptr;
    AllOutside* outside = nullptr;
  };

  // A table on its way: one block at a time.
  struct Reading {
    std::unique_ptr<RecordCursor> cursor;
    Buffer block;
    Buffer kept;  // what is kept for one block only
  };

  const Plan& plan() const { return *encoders_->impl_->plan; }
  const ir::Program& program() const { return plan().program; }
  const SizeValues& sizes() const { return encoders_->impl_->sizes; }
  const Cut& cut_of(const std::string& record_set) const { return cuts_.at(record_set); }

  // Whether blocks of a table can be used as they are: they are read as they are needed, or lie in
  // memory as this engine cuts them.
  static bool usable(const RecordTable& table, const Cut& cut) {
    return table.kept(0) == nullptr ||
           (cut.block == RecordTable::kept_records && cut.stride == cut.block);
  }
  bool reads() const { return table_ && table_->kept(0) == nullptr; }

  std::vector<MergeState> zeros(const Round& round) const {
    std::vector<MergeState> states;
    states.reserve(round.merges.size());
    for (const Merge& merge : round.merges)
      states.push_back(
          zero(*merge.monoid, cell_shape(program().graph[merge.fold].type(), sizes())));
    return states;
  }

  // The shared values of a program: made here or received, and then checked.
  std::vector<const Tensor*> shared_values(const RoundProgram& compiled, const Tables& tables,
                                           const Tensor& numbers,
                                           const std::map<NodeId, Tensor>& received) const {
    std::vector<const Tensor*> values = {&numbers};
    for (std::size_t i = 1; i < tables.shared.size(); ++i) {
      const NodeId id = tables.shared[i];
      if (const auto constant = compiled.constants.find(id); constant != compiled.constants.end()) {
        values.push_back(&constant->second.front());
        continue;
      }
      const auto value = received.find(id);
      if (value == received.end())
        throw RunError(fmt::format("{} was not received", describe(plan(), id)));
      if (value->second.shape != cell_shape(program().graph[id].type(), sizes()) ||
          value->second.count() != element_count(value->second.shape)) {
        throw RunError(fmt::format("{} was received with a wrong shape", describe(plan(), id)));
      }
      values.push_back(&value->second);
    }
    return values;
  }

  void encode_set(const Round& round, const RoundProgram& compiled, const SetProgram& set,
                  const Cut& cut, const std::map<NodeId, Tensor>& received,
                  std::vector<MergeState>& states) {
    const Tensor numbers({static_cast<std::int64_t>(set.tables.numbers.size())},
                         set.tables.numbers);
    const std::vector<const Tensor*> shared =
        shared_values(compiled, set.tables, numbers, received);
    // What is too large for memory has no room for more of it.
    Kept* kept =
        set.kept_columns > 0 && !reads() ? &kept_[{round.number, set.record_set}] : nullptr;
    const bool again = kept != nullptr && still_right(*kept, set, shared);
    AllOutside outside;
    Call call{round, set, again ? set.again : set.first, cut, shared, {}, nullptr, &outside};
    if (kept != nullptr) {
      kept->valid = again;
      kept->columns.reserve(cut.blocks * set.kept_columns * cut.stride);
      call.kept = kept->columns.data();
    }
    call.fills.reserve(set.tables.fills.size() * cut.stride);
    for (std::size_t i = 0; i < set.tables.fills.size(); ++i) {
      const Tables::Fill& fill = set.tables.fills[i];
      std::fill_n(call.fills.data() + i * cut.stride, cut.stride,
                  shared[fill.shared]->data[fill.entry]);
    }
    const std::vector<MergeState> folded = encode_chunks(call);
    outside.check(program(), sizes());
    for (std::size_t i = 0; i < round.merges.size(); ++i) {
      if (record_set_of(round.merges[i]) == set.record_set) states[i] = folded[i];
    }
    if (kept == nullptr || again) return;
    kept->depends.clear();
    for (const std::uint32_t number : set.kept_depends) kept->depends.push_back(*shared[number]);
    kept->valid = true;
  }

  static bool still_right(const Kept& kept, const SetProgram& set,
                          const std::vector<const Tensor*>& shared) {
    if (!kept.valid) return false;
    for (std::size_t i = 0; i < set.kept_depends.size(); ++i) {
      if (!same_bits(kept.depends[i], *shared[set.kept_depends[i]])) return false;
    }
    return true;
  }

  std::vector<MergeState> encode_chunks(const Call& call) const {
    if (plan().exact) return encode_exactly(call);
    MergeTree tree(call.round.merges, call.cut.chunks);
    const std::size_t threads = useful_threads(call);
    // Chunks go to whoever is free. A table that is read goes in as many runs as there are threads, or
    // in one when reading must begin at its beginning.
    const std::size_t runs = !reads() ? call.cut.chunks : table_->seekable() ? threads : 1;
    in_parallel(runs, threads, [&](std::size_t run) {
      const std::size_t first = run * call.cut.chunks / runs;
      const std::size_t last = (run + 1) * call.cut.chunks / runs;
      std::optional<Reading> reading;
      if (reads()) reading = start_reading(call, first);
      for (std::size_t chunk = first; chunk < last; ++chunk) {
        Frame frame = start(call);
        run_chunk(call, chunk, reading ? &*reading : nullptr, frame);
        tree.add(chunk, finish(call, frame));
      }
    });
    return tree.take();
  }

  // Where no order of chunks shows, each thread folds all of its chunks into one state, which may be large.
  std::vector<MergeState> encode_exactly(const Call& call) const {
    const std::size_t threads = useful_threads(call);
    const std::size_t runs = !reads() || table_->seekable() ? threads : 1;
    MergeTree tree(call.round.merges, runs);
    std::atomic<std::size_t> next = 0;
    in_parallel(runs, threads, [&](std::size_t run) {
      const portable::Scope scope(true);
      Frame frame = start(call);
      if (reads()) {
        Reading reading = start_reading(call, run * call.cut.chunks / runs);
        for (std::size_t chunk = run * call.cut.chunks / runs;
             chunk < (run + 1) * call.cut.chunks / runs; ++chunk)
          run_chunk(call, chunk, &reading, frame);
      } else {
        for (std::size_t chunk = next++; chunk < call.cut.chunks; chunk = next++)
          run_chunk(call, chunk, nullptr, frame);
      }
      tree.add(run, finish(call, frame));
    });
    return tree.take();
  }

  // To wake a thread takes longer than some calls take altogether.
  std::size_t useful_threads(const Call& call) const {
    constexpr std::size_t worth_a_thread = 500'000;  // numbers to be read
    const std::size_t numbers = call.cut.records * call.program.columns_read;
    const auto wanted = static_cast<std::size_t>(std::max(options_.threads, 1));
    return std::min({wanted, call.cut.chunks, 1 + numbers / worth_a_thread});
  }

  Reading start_reading(const Call& call, std::size_t chunk) const {
    const std::size_t first = chunk * call.cut.chunk * call.cut.block;
    return {table_->read(static_cast<std::int64_t>(first), call.cut.block, call.cut.stride),
            Buffer(table_->columns() * call.cut.stride),
            Buffer(call.set.kept_columns * call.cut.stride)};
  }

  // A frame that has folded nothing yet.
  Frame start(const Call& call) const {
    // Kept from call to call: many small clients would spend their time on it otherwise.
    thread_local Buffer scratch;
    scratch.reserve(call.program.scratch_columns * call.cut.stride);
    Frame frame;
    frame.program = &program();
    frame.sizes = &sizes();
    frame.exact = plan().exact;
    frame.stride = call.cut.stride;
    frame.shared = call.shared;
    for (const Merge& merge : call.round.merges) {
      const bool ours = record_set_of(merge) == call.set.record_set;
      frame.accumulators.push_back(ours ? accumulator_for(merge) : nullptr);
    }
    frame.sources.resize(engine::first_input + call.set.tables.inputs.size());
    frame.sources[engine::scratch] = scratch.data();
    frame.sources[engine::fills] = call.fills.data();
    return frame;
  }

  void run_chunk(const Call& call, std::size_t chunk, Reading* reading, Frame& frame) const {
    const std::size_t last = std::min((chunk + 1) * call.cut.chunk, call.cut.blocks);
    for (std::size_t b = chunk * call.cut.chunk; b < last; ++b) {
      frame.records = call.cut.length(b);
      frame.sources[engine::kept] = reading != nullptr
                                        ? reading->kept.data()
                                        : call.kept + b * call.set.kept_columns * call.cut.stride;
      if (reading != nullptr) reading->cursor->next(reading->block.data());
      for (std::size_t i = 0; i < call.set.tables.inputs.size(); ++i) {
        frame.sources[engine::first_input + i] = input_block(call, i, b, reading);
      }
      engine::run(call.program, frame);
    }
  }

  // What a frame has folded.
  std::vector<MergeState> finish(const Call& call, Frame& frame) const {
    std::vector<MergeState> states = zeros(call.round);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (frame.accumulators[i]) frame.accumulators[i]->finish(states[i]);
    }
    if (!frame.outside.empty()) call.outside->add(frame.outside);
    return states;
  }

  const std::string& record_set_of(const Merge& merge) const {
    return engine::record_set_of(program(), program().graph[merge.fold]);
  }
  std::unique_ptr<engine::Accumulator> accumulator_for(const Merge& merge) const {
    const Shape shape = cell_shape(program().graph[merge.fold].type(), sizes());
    return engine::accumulator_kind(*merge.monoid).make(*merge.monoid, shape);
  }

  // The first column of an input in a block.
  double* input_block(const Call& call, std::size_t index, std::size_t b, Reading* reading) const {
    const std::uint32_t input = call.set.tables.inputs[index];
    if (!table_) {
      return inputs_[input]->data() + b * call.set.tables.input_columns[index] * call.cut.stride;
    }
    const RecordTable::Place& place = table_->inputs().find(program().inputs[input].name)->second;
    const double* block = reading != nullptr ? reading->block.data() : table_->kept(b);
    return const_cast<double*>(block) + place.first * call.cut.stride;
  }

  std::shared_ptr<const Encoders> encoders_;
  EngineOptions options_;
  std::map<std::string, Cut> cuts_;
  std::vector<std::shared_ptr<const Buffer>>
      inputs_;  // by input; null for shared ones, and when there is a table
  std::shared_ptr<const RecordTable> table_;
  std::map<std::pair<int, std::string>, Kept> kept_;
};

Engine::Engine(std::shared_ptr<const Encoders> encoders, const Client& client,
               EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(encoders), client, options)) {}
Engine::Engine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Client& client,
               EngineOptions options)
    : Engine(std::make_shared<const Encoders>(std::move(plan), std::move(sizes)), client, options) {
}
Engine::Engine(std::shared_ptr<const Encoders> encoders, const Engine& same_client,
               std::int64_t most)
    : impl_(std::make_unique<Impl>(std::move(encoders), *same_client.impl_, most)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

bool Engine::has_array(const std::string& input) const { return impl_->has_array(input); }
std::optional<Tensor> Engine::array(const std::string& input) const { return impl_->array(input); }

std::vector<MergeState> Engine::encode(const Round& round,
                                       const std::map<NodeId, Tensor>& received) {
  return impl_->encode(round, received);
}

std::int64_t Engine::records() const { return impl_->records(); }

}  // namespace starfold
