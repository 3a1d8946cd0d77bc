#include "starfold/runtime/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "starfold/base/error.h"
#include "starfold/base/parallel.h"
#include "starfold/ops/meaning.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/engine_blocks.h"
#include "starfold/runtime/engine_layout.h"
#include "starfold/runtime/engine_program.h"
#include "starfold/runtime/engine_run.h"
#include "starfold/tensor/bits.h"
#include "starfold/tensor/portable.h"

namespace starfold {
namespace {

using engine::Array;
using engine::BlockProgram;
using engine::Buffer;
using engine::Cut;
using engine::Frame;
using engine::Outside;
using engine::Place;
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

  // A value of a round laid down as a whole.
  const engine::StoreProgram& store(const Round& round, NodeId node) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<const engine::StoreProgram>& slot = stores_[{round.number, node}];
    if (!slot)
      slot = std::make_unique<const engine::StoreProgram>(
          engine::compile_store(*plan, round, node, sizes));
    return *slot;
  }
  // Those of a block.
  std::shared_ptr<const Encoders> block(NodeId node) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Encoders>& slot = blocks_[node];
    if (!slot) slot = std::make_shared<const Encoders>(plan->blocks.at(node), sizes);
    return slot;
  }

  const std::shared_ptr<const Plan> plan;
  const SizeValues sizes;

 private:
  std::map<std::pair<int, NodeId>, std::unique_ptr<const engine::StoreProgram>> stores_;
  std::map<NodeId, std::shared_ptr<const Encoders>> blocks_;
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
      : Impl(encoders,
             Records{record_counts(encoders->impl_->plan->program, client), nullptr, client.shares},
             options) {
    for (const Round* round : rounds_of(plan())) {
      for (const NodeId id : round->encoders) {
        const ir::Node& node = program().graph[id];
        if (node.kind != ir::Kind::input || arrays_.count(id) != 0) continue;
        const ir::Input& input = program().inputs[node.index];
        const Cut& cut = cut_of(input.type.record_set());
        const std::size_t axis = *input.type.record_axis();
        const auto lay_out = [&](const Tensor& array) {
          arrays_[id] = std::make_shared<const Buffer>(
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

  Impl(std::shared_ptr<const Encoders> encoders, const Records& records, EngineOptions options)
      : encoders_(std::move(encoders)),
        options_(options),
        table_(records.table),
        blocks_(plan(), sizes(), options,
                [this](NodeId node) { return encoders_->impl_->block(node); }) {
    rounds_ = rounds_of(plan());
    prepared_.resize(rounds_.size());
    cut(records.counts, records.shares);
  }

  Impl(std::shared_ptr<const Encoders> encoders, const Impl& other, std::int64_t most)
      : Impl(std::move(encoders), Records{{}, other.table_, other.shares_}, other.options_) {
    for (const auto& [record_set, place] : other.places_) {
      // Whole blocks, so that they lie as they were laid out.
      const std::int64_t whole = std::max<std::int64_t>(most, options_.block_records);
      const auto count = std::min(static_cast<std::int64_t>(place.all.records), whole);
      const Cut cut = place.all.shared ? place.all : Cut(count, options_.block_records);
      places_.insert_or_assign(record_set, Place{cut, cut, 0});
    }
    for (const ir::Input& input : program().inputs) {
      if (!input.type.federated()) continue;
      for (const ir::Input& theirs : other.program().inputs) {
        const auto array = other.arrays_.find(theirs.node);
        if (array != other.arrays_.end() && theirs.name == input.name && theirs.type == input.type)
          arrays_[input.node] = array->second;
      }
    }
  }

  // So many records, cut anew; what was kept of others goes.
  void cut(const std::map<std::string, std::int64_t>& counts,
           std::shared_ptr<const Shares> shares) {
    shares_ = std::move(shares);
    const auto put = [&](const std::string& record_set, const Cut& cut) {
      places_.insert_or_assign(record_set, Place{cut, cut, 0});
    };
    put(ir::client_set, engine::client_cut());
    for (const auto& [record_set, count] : counts)
      put(record_set, Cut(count, options_.block_records));
    if (shares_) {
      put(ir::client_set, Cut(static_cast<std::int64_t>(shares_->clients), options_.block_records));
      for (const auto& [record_set, ends] : shares_->ends) {
        if (record_set != ir::client_set) put(record_set, Cut(ends, options_.block_records));
      }
    }
    kept_.clear();
  }
  const Cut& cut_of(const std::string& record_set) const { return places_.at(record_set).all; }
  void forget() {
    for (auto& [round, kept] : kept_) kept.made.clear();
  }
  void work_on(std::size_t share) {
    share_ = share;
    if (share == 0) results_.clear();  // what was laid down before is another's
    for (auto& [record_set, place] : places_) {
      if (!place.all.shared) continue;
      place.cut = place.all.of_client(share);
      place.first = place.all.shared->first_blocks[share];
    }
  }
  void give(std::size_t input, Array array) {
    arrays_[program().inputs[input].node] = std::move(array);
  }
  void give_table(std::size_t input, const std::string& name) {
    table_names_[program().inputs[input].node] = name;
  }
  Array result(std::size_t output) const { return results_.at(output); }
  const std::map<std::string, Tensor>& kept() const { return kept_results_; }
  bool has_private() const { return !private_.empty(); }

  std::int64_t records() const {
    std::size_t most = 0;
    for (const auto& [record_set, place] : places_) {
      if (record_set != ir::client_set) most = std::max(most, place.all.records);
    }
    return static_cast<std::int64_t>(most);
  }

  bool has_array(const std::string& name) const {
    return std::any_of(program().inputs.begin(), program().inputs.end(),
                       [&](const ir::Input& input) {
                         return input.name == name && arrays_.count(input.node) != 0;
                       });
  }
  std::optional<Tensor> array(const std::string& name) const {
    for (const ir::Input& input : program().inputs) {
      const auto array = arrays_.find(input.node);
      if (input.name == name && array != arrays_.end())
        return tensor_of(*array->second, input.type);
    }
    return std::nullopt;
  }

  Encoded& encode(const Round& round, const Received& received) {
    Prepared& prepared = prepare(round);
    Running running{round, prepared.constants, received, {}};
    Encoded& result = prepared.result;
    result.passes.clear();
    for (const NodeId pass : round.passes)
      result.passes.push_back(blocks_.batches(pass, places_, around(running)));
    Sinks sinks(round.stores.size());
    for (Work& work : prepared.sets) encode_set(running, work, result.states, sinks);
    put_down(running, sinks);
    return result;
  }

  void save_private(ByteWriter& out) const {
    std::uint32_t count = 0;
    for (const auto& [key, values] : private_.all())
      count += static_cast<std::uint32_t>(values.size());
    out.number(count);
    for (const auto& [key, values] : private_.all()) {
      for (const auto& [clock, array] : values) {
        out.number(key.loop);
        out.number(key.slot);
        out.tensor(Tensor({static_cast<std::int64_t>(clock.size())}, clock));
        out.tensor(tensor_of(*array, program().loops[key.loop].carried[key.slot].type));
      }
    }
  }

  void restore_private(ByteReader& saved) {
    private_.clear();
    for (auto left = saved.number<std::uint32_t>(); left > 0; --left) {
      engine::PrivateStates::Key key;
      key.loop = saved.number<ir::LoopId>();
      key.slot = saved.number<std::uint32_t>();
      const Tensor clock = saved.tensor();
      const Tensor value = saved.tensor();
      if (key.loop >= program().loops.size() ||
          key.slot >= program().loops[key.loop].carried.size())
        ByteReader::fail();
      const Type& type = program().loops[key.loop].carried[key.slot].type;
      if (!type.federated() || clock.data.empty() || value.shape != shape_of(type))
        ByteReader::fail();
      private_.restore(key, clock.data,
                       std::make_shared<const Buffer>(engine::in_column_blocks(
                           value, *type.record_axis(), cut_of(type.record_set()))));
    }
  }

 private:
  // What was computed once for all iterations, for one record set of a round.
  struct Kept {
    Buffer columns;
    struct Made {
      std::vector<Tensor> depends;  // the shared values it was computed with
      std::vector<Array> arrays;    // and the arrays
      bool valid = false;
    };
    std::vector<Made> made;  // by share
  };

  // A round while it is encoded: what it has received, and what was laid down for it.
  struct Running {
    const Round& round;
    const std::map<NodeId, std::vector<Tensor>>& constants;
    const Received& received;
    std::map<NodeId, Array> arrays;
  };
  using Sinks = std::vector<std::shared_ptr<Buffer>>;  // of a round's stores; null: not computed

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
    std::vector<Array> arrays;  // by input of the set; null: it lies in the table
    Buffer fills;
    std::optional<Frame> frame;
  };
  // A round in the same way.
  struct Prepared {
    const std::map<NodeId, std::vector<Tensor>>& constants;
    std::vector<Work> sets;
    Encoded result;
  };

  // Everything that the workers of one call share.
  struct Call {
    const Work& work;
    const BlockProgram& program;
    const Cut& cut;
    std::size_t first = 0;  // block of the arrays
    double* kept = nullptr;
    AllOutside* outside = nullptr;
    const Sinks* sinks = nullptr;
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

  Prepared& prepare(const Round& asked) {
    const Round& round = *rounds_.at(static_cast<std::size_t>(asked.number));
    std::unique_ptr<Prepared>& slot = prepared_.at(static_cast<std::size_t>(asked.number));
    if (slot) return *slot;
    const RoundProgram& compiled = encoders_->impl_->program(round);
    slot = std::make_unique<Prepared>(Prepared{compiled.constants, {}, {zeros(round), {}}});
    for (const SetProgram& set : compiled.sets)
      slot->sets.push_back(prepare(round, set, compiled.constants));
    return *slot;
  }

  Work prepare(const Round& round, const SetProgram& set,
               const std::map<NodeId, std::vector<Tensor>>& constants) const {
    Work work;
    work.round = &round;
    work.set = &set;
    work.place = &places_.at(set.record_set);
    work.numbers =
        Tensor({static_cast<std::int64_t>(set.tables.numbers.size())}, set.tables.numbers);
    work.constants.push_back(nullptr);  // these are its own
    work.shapes.emplace_back();
    for (std::size_t i = 1; i < set.tables.shared.size(); ++i) {
      const auto constant = constants.find(set.tables.shared[i]);
      work.constants.push_back(constant == constants.end() ? nullptr : &constant->second.front());
      work.shapes.push_back(cell_shape(program().graph[set.tables.shared[i]].type(), sizes()));
    }
    work.zeros = zeros(round);
    for (const Merge& merge : round.merges)
      work.ours.push_back(record_set_of(merge) == set.record_set);
    for (const Store& store : round.stores) {
      const bool computed = !is_array(program(), store.node) &&
                            program().graph[store.node].type().record_set() == set.record_set;
      work.sink_columns.push_back(computed ? cells_of(store.node) : 0);
    }
    return work;
  }

  // The shared values of a program: made here or received, and then checked.
  void find_shared(const Running& running, Work& work) const {
    work.shared.clear();
    work.shared.push_back(&work.numbers);
    for (std::size_t i = 1; i < work.constants.size(); ++i) {
      const Tensor* value = work.constants[i];
      if (value == nullptr) {
        value = running.received(work.set->tables.shared[i]);
        check_received(value, work.set->tables.shared[i], work.shapes[i]);
      }
      work.shared.push_back(value);
    }
  }

  void check_received(const Tensor* value, NodeId id, const Shape& shape) const {
    if (value == nullptr) throw RunError(fmt::format("{} was not received", describe(plan(), id)));
    if (value->shape != shape || value->count() != element_count(value->shape))
      throw RunError(fmt::format("{} was received with a wrong shape", describe(plan(), id)));
  }

  const Tensor& shared_value(const Running& running, NodeId id) const {
    if (const auto constant = running.constants.find(id); constant != running.constants.end())
      return constant->second.front();
    const Tensor* const value = running.received(id);
    check_received(value, id, cell_shape(program().graph[id].type(), sizes()));
    return *value;
  }

  // --- arrays: what is laid down as a whole

  Shape shape_of(const Type& type) const {
    return engine::block_shape(type, sizes(),
                               static_cast<std::int64_t>(cut_of(type.record_set()).records));
  }
  Tensor tensor_of(const Buffer& array, const Type& type) const {
    return engine::from_column_blocks(array, shape_of(type), *type.record_axis(),
                                      cut_of(type.record_set()));
  }
  std::size_t cells_of(NodeId id) const {
    return static_cast<std::size_t>(element_count(cell_shape(program().graph[id].type(), sizes())));
  }

  engine::Around around(Running& running) {
    return {[&](NodeId id) -> const Tensor& { return shared_value(running, id); },
            [&](NodeId id) { return array(running, id); },
            [&](NodeId id) { return table_name(id); }, table_, shares_};
  }

  // The name of an input that is read from the table.
  std::optional<std::string> table_name(NodeId id) const {
    const ir::Node& node = program().graph[id];
    if (!table_ || node.kind != ir::Kind::input || arrays_.count(id) != 0) return std::nullopt;
    const auto other = table_names_.find(id);
    return other != table_names_.end() ? other->second : program().inputs[node.index].name;
  }

  Array array(Running& running, NodeId id) {
    if (const auto input = arrays_.find(id); input != arrays_.end()) return input->second;
    if (const auto known = running.arrays.find(id); known != running.arrays.end())
      return known->second;
    const ir::Node& node = program().graph[id];
    Array made;
    if (node.kind == ir::Kind::local || node.kind == ir::Kind::project) {
      const NodeId block = node.kind == ir::Kind::project ? node.args[0] : id;
      made = blocks_.each_client(block, places_, around(running)).at(node.index);
    } else if (node.kind == ir::Kind::loop_param || node.kind == ir::Kind::loop_result) {
      made = private_value(running, node);
    } else if (node.kind == ir::Kind::input) {
      made = from_table(id);
    } else {
      const engine::StoreProgram& store = encoders_->impl_->store(running.round, id);
      std::optional<Work>& work = stores_[&store];
      if (!work) work = prepare(store.round, store.set, running.constants);
      std::vector<MergeState> none;
      Sinks sinks(1);
      encode_set(running, *work, none, sinks);
      made = std::move(sinks[0]);
    }
    return running.arrays[id] = made;
  }

  // A private state of the iteration that the server says it is; before there is one, its first value.
  Array private_value(Running& running, const ir::Node& node) {
    const Array known =
        private_.find({node.index, node.slot}, shared_value(running, node.args[0]).data);
    return known ? known : array(running, program().loops[node.index].carried[node.slot].init);
  }

  // An input of a table as a whole.
  Array from_table(NodeId id) const {
    const std::optional<std::string> name = table_name(id);
    if (!name) throw Bug("an input that is nowhere");
    const Cut& cut = cut_of(program().graph[id].type().record_set());
    const RecordTable::Place& place = table_->inputs().find(*name)->second;
    auto array = std::make_shared<Buffer>(cut.blocks * place.count * cut.stride);
    std::unique_ptr<RecordCursor> cursor;
    Buffer block;
    if (reads() && cut.blocks > 0) {
      cursor = table_->read(0, cut.block, cut.stride);
      block.reserve(table_->columns() * cut.stride);
    }
    for (std::size_t b = 0; b < cut.blocks; ++b) {
      if (cursor) cursor->next(block.data());
      const double* from = cursor ? block.data() : table_->kept(b);
      std::copy_n(from + place.first * cut.stride, place.count * cut.stride,
                  array->data() + b * place.count * cut.stride);
    }
    return array;
  }

  // What a round has computed for this client alone.
  void put_down(Running& running, const Sinks& sinks) {
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < sinks.size(); ++i)
      arrays.push_back(sinks[i] ? Array(sinks[i]) : array(running, running.round.stores[i].node));
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      const Store& store = running.round.stores[i];
      switch (store.what) {
        case Store::What::result:
          results_[store.index] = arrays[i];
          break;
        case Store::What::keep:
          kept_results_[program().keeps[store.index].name] =
              tensor_of(*arrays[i], program().graph[store.node].type());
          break;
        case Store::What::state: {
          const ir::Carried& carried = program().loops[store.index].carried[store.slot];
          const std::vector<double> now =
              shared_value(running, program().graph[carried.param].args[0]).data;
          std::vector<double> next = now;
          next.back() += 1;
          private_.put({store.index, store.slot}, next, arrays[i], now);
          break;
        }
      }
    }
  }

  void encode_set(Running& running, Work& work, std::vector<MergeState>& states, Sinks& sinks) {
    const SetProgram& set = *work.set;
    const Cut& cut = work.place->cut;
    make_sinks(work, sinks);
    work.arrays.clear();
    for (const NodeId id : set.tables.inputs)
      work.arrays.push_back(table_name(id) ? nullptr : array(running, id));
    if (cut.records == 0) {
      for (std::size_t i = 0; i < work.ours.size(); ++i) {
        if (work.ours[i]) states[i] = work.zeros[i];
      }
      return;
    }
    find_shared(running, work);
    // What is too large for memory has no room for more of it.
    Kept* kept =
        set.kept_columns > 0 && !reads() ? &kept_[{work.round->number, set.record_set}] : nullptr;
    const bool again = kept != nullptr && still_right(*kept, work);
    AllOutside outside;
    Call call{work,  again ? set.again : set.first, cut, work.place->first, nullptr, &outside,
              &sinks};
    if (kept != nullptr) {
      kept->made.resize(std::max(kept->made.size(), share_ + 1));
      kept->made[share_].valid = again;
      kept->columns.reserve(work.place->all.blocks * set.kept_columns * cut.stride);
      call.kept = kept->columns.data();
    }
    work.fills.reserve(set.tables.fills.size() * work.place->all.stride);
    for (std::size_t i = 0; i < set.tables.fills.size(); ++i) {
      const Tables::Fill& fill = set.tables.fills[i];
      std::fill_n(work.fills.data() + i * cut.stride, cut.stride,
                  work.shared[fill.shared]->data[fill.entry]);
    }
    if (cut.chunks == 1 && !plan().exact && !reads()) {
      encode_one_chunk(call, work, states);
    } else {
      const std::vector<MergeState> folded = encode_chunks(call);
      for (std::size_t i = 0; i < work.ours.size(); ++i) {
        if (work.ours[i]) states[i] = folded[i];
      }
    }
    outside.check(program(), sizes());
    if (kept == nullptr || again) return;
    Kept::Made& made = kept->made[share_];
    made.arrays = work.arrays;
    made.depends.clear();
    for (const std::uint32_t number : set.kept_depends)
      made.depends.push_back(*work.shared[number]);
    made.valid = true;
  }

  // Room for what a call lays down. That of several shares lies together, and is used again when nobody else has it.
  void make_sinks(const Work& work, Sinks& sinks) {
    for (std::size_t i = 0; i < work.sink_columns.size(); ++i) {
      if (work.sink_columns[i] == 0) continue;
      const std::size_t size =
          work.place->all.blocks * work.sink_columns[i] * work.place->all.stride;
      if (!shares_) {
        sinks[i] = std::make_shared<Buffer>(size);
        continue;
      }
      std::shared_ptr<Buffer>& common = sinks_[{work.round, i}];
      const bool taken = common && common.use_count() > 1 && share_ == 0;
      if (!common || taken || common->size() < size) common = std::make_shared<Buffer>(size);
      sinks[i] = common;
    }
  }

  // Most rounds of most clients: no thread, no tree, and the memory of the last time.
  void encode_one_chunk(const Call& call, Work& work, std::vector<MergeState>& states) const {
    if (!work.frame) {
      work.frame = start(call);
    } else {
      prepare_frame(call, *work.frame);
    }
    Frame& frame = *work.frame;
    try {
      run_chunk(call, 0, nullptr, frame);
    } catch (...) {
      work.frame.reset();  // what it has folded belongs to nobody
      throw;
    }
    for (std::size_t i = 0; i < work.ours.size(); ++i) {
      if (!work.ours[i]) continue;
      std::unique_ptr<engine::Accumulator>& accumulator = frame.accumulators[i];
      accumulator->finish(states[i]);
      if (!accumulator->restart()) accumulator = accumulator_for(work.round->merges[i]);
    }
    if (!frame.outside.empty()) call.outside->add(frame.outside);
  }

  bool still_right(const Kept& kept, const Work& work) const {
    if (share_ >= kept.made.size()) return false;
    const Kept::Made& made = kept.made[share_];
    if (!made.valid || made.arrays != work.arrays) return false;
    for (std::size_t i = 0; i < work.set->kept_depends.size(); ++i) {
      if (!same_bits(made.depends[i], *work.shared[work.set->kept_depends[i]])) return false;
    }
    return true;
  }

  std::vector<MergeState> encode_chunks(const Call& call) const {
    if (plan().exact) return encode_exactly(call);
    MergeTree tree(call.work.round->merges, call.cut.chunks);
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
    MergeTree tree(call.work.round->merges, runs);
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
            Buffer(call.work.set->kept_columns * call.cut.stride)};
  }

  // A frame that has folded nothing yet.
  Frame start(const Call& call) const {
    Frame frame;
    frame.program = &program();
    frame.sizes = &sizes();
    frame.exact = plan().exact;
    for (std::size_t i = 0; i < call.work.ours.size(); ++i)
      frame.accumulators.push_back(call.work.ours[i] ? accumulator_for(call.work.round->merges[i])
                                                     : nullptr);
    frame.sinks.resize(call.work.sink_columns.size());
    frame.sources.resize(engine::first_input + call.work.set->tables.inputs.size());
    prepare_frame(call, frame);
    return frame;
  }

  // What changes from call to call.
  void prepare_frame(const Call& call, Frame& frame) const {
    // Kept from call to call: many small clients would spend their time on it otherwise.
    thread_local Buffer scratch;
    scratch.reserve(call.program.scratch_columns * call.cut.stride);
    frame.stride = call.cut.stride;
    frame.shared = call.work.shared;
    frame.sources[engine::scratch] = scratch.data();
    frame.sources[engine::fills] = call.work.fills.data();
    frame.outside.clear();
  }

  void run_chunk(const Call& call, std::size_t chunk, Reading* reading, Frame& frame) const {
    const std::size_t last = std::min((chunk + 1) * call.cut.chunk, call.cut.blocks);
    for (std::size_t b = chunk * call.cut.chunk; b < last; ++b) {
      if (options_.stop != nullptr && *options_.stop) throw RunError("the run was stopped");
      const std::size_t place = call.first + b;  // of the block in the arrays
      frame.records = call.cut.length(b);
      frame.sources[engine::kept] =
          reading != nullptr ? reading->kept.data()
                             : call.kept + place * call.work.set->kept_columns * call.cut.stride;
      if (reading != nullptr) reading->cursor->next(reading->block.data());
      for (std::size_t i = 0; i < frame.sinks.size(); ++i) {
        if (call.work.sink_columns[i] > 0)
          frame.sinks[i] =
              (*call.sinks)[i]->data() + place * call.work.sink_columns[i] * call.cut.stride;
      }
      for (std::size_t i = 0; i < call.work.arrays.size(); ++i) {
        frame.sources[engine::first_input + i] = input_block(call, i, place, reading);
      }
      engine::run(call.program, frame);
    }
  }

  // What a frame has folded.
  std::vector<MergeState> finish(const Call& call, Frame& frame) const {
    std::vector<MergeState> states = call.work.zeros;
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
    if (const Array& array = call.work.arrays[index])
      return array->data() + b * call.work.set->tables.input_columns[index] * call.cut.stride;
    const std::string name = *table_name(call.work.set->tables.inputs[index]);
    const RecordTable::Place& place = table_->inputs().find(name)->second;
    const double* block = reading != nullptr ? reading->block.data() : table_->kept(b);
    return const_cast<double*>(block) + place.first * call.cut.stride;
  }

  std::shared_ptr<const Encoders> encoders_;
  EngineOptions options_;
  std::shared_ptr<const Shares> shares_;  // of several clients or batches
  std::size_t share_ = 0;                 // the one at work, inside a block
  engine::Places places_;
  std::map<NodeId, Array> arrays_;  // of inputs that are not read from a table
  std::shared_ptr<const RecordTable> table_;
  std::map<NodeId, std::string> table_names_;  // of inputs that the table has under another name
  engine::Blocks blocks_;
  engine::PrivateStates private_;
  std::map<std::size_t, Array> results_;  // of a block
  std::map<std::string, Tensor> kept_results_;
  std::map<std::pair<int, std::string>, Kept> kept_;
  std::vector<const Round*> rounds_;
  std::vector<std::unique_ptr<Prepared>> prepared_;  // by round
  std::map<const engine::StoreProgram*, std::optional<Work>> stores_;
  std::map<std::pair<const Round*, std::size_t>, std::shared_ptr<Buffer>> sinks_;
};

Engine::Engine(std::shared_ptr<const Encoders> encoders, const Client& client,
               EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(encoders), client, options)) {}
Engine::Engine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Client& client,
               EngineOptions options)
    : Engine(std::make_shared<const Encoders>(std::move(plan), std::move(sizes)), client, options) {
}
Engine::Engine(std::shared_ptr<const Encoders> encoders, const Records& records,
               EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(encoders), records, options)) {}
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
  return encode_all(round, received).states;
}
Engine::Encoded Engine::encode_all(const Round& round, const std::map<NodeId, Tensor>& received) {
  return impl_->encode(round, [&](NodeId id) {
    const auto value = received.find(id);
    return value == received.end() ? nullptr : &value->second;
  });
}
Engine::Encoded& Engine::encode_again(const Round& round, const Received& received) {
  return impl_->encode(round, received);
}
const std::map<std::string, Tensor>& Engine::kept() const { return impl_->kept(); }
bool Engine::has_private() const { return impl_->has_private(); }
void Engine::save_private(ByteWriter& out) const { impl_->save_private(out); }
void Engine::restore_private(ByteReader& saved) { impl_->restore_private(saved); }
void Engine::cut(const std::map<std::string, std::int64_t>& counts,
                 std::shared_ptr<const Shares> shares) {
  impl_->cut(counts, std::move(shares));
}
void Engine::work_on(std::size_t share) { impl_->work_on(share); }
void Engine::forget() { impl_->forget(); }
const engine::Cut& Engine::cut_of(const std::string& record_set) const {
  return impl_->cut_of(record_set);
}
void Engine::give(std::size_t input, std::shared_ptr<const engine::Buffer> array) {
  impl_->give(input, std::move(array));
}
void Engine::give_table(std::size_t input, const std::string& name) {
  impl_->give_table(input, name);
}
std::shared_ptr<const engine::Buffer> Engine::result(std::size_t output) const {
  return impl_->result(output);
}

std::int64_t Engine::records() const { return impl_->records(); }

}  // namespace starfold
