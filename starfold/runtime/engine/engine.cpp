#include "starfold/runtime/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/engine/blocks.h"
#include "starfold/runtime/engine/chunks.h"
#include "starfold/runtime/engine/encoders.h"
#include "starfold/runtime/engine/layout.h"
#include "starfold/runtime/steps/program.h"
#include "starfold/tensor/bits.h"

namespace starfold {
namespace {

using engine::Array;
using engine::Buffer;
using engine::Call;
using engine::Cut;
using engine::Place;
using engine::RoundProgram;
using engine::SetProgram;
using engine::Sinks;
using engine::Tables;
using engine::Work;
using ir::NodeId;

}  // namespace

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
        blocks_(plan(), sizes(), without_copies(options),
                [this](NodeId node) -> const engine::CompiledBlock& {
                  return encoders_->impl_->block(node);
                }) {
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

  // What it has kept takes no room any more.
  ~Impl() {
    forget_kept();
    if (copied_ > 0) *options_.copies += copied_;
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

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
    shared_places_.clear();
    for (auto& [record_set, place] : places_) {
      if (place.all.shared) shared_places_.push_back(&place);
    }
    forget_kept();
  }
  const Cut& cut_of(const std::string& record_set) const { return places_.at(record_set).all; }
  void forget() {
    for (auto& [round, kept] : kept_) kept.made.clear();
  }
  void work_on(std::size_t share) {
    if (share == 0) results_.clear();  // what was laid down before is another's
    go_to(share);
  }
  void go_to(std::size_t share) {
    share_ = share;
    for (engine::Place* const place : shared_places_) {
      place->cut = place->all.of_client(share);
      place->first = place->all.shared->first_blocks[share];
    }
  }
  void give(std::size_t input, Array array) {
    arrays_[program().inputs[input].node] = std::move(array);
    ++arrays_given_;
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
    lay_out_table();
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

  void encode_shares(const Round& round, std::size_t first, std::size_t last,
                     const Received& received, const Turns& turns) {
    Prepared& prepared = prepare(round);
    Running running{round, prepared.constants, received, {}};
    std::vector<MergeState>& states = prepared.result.states;
    Sinks sinks(round.stores.size());
    if (shares_) go_to(first);
    for (Work& work : prepared.sets) {
      make_sinks(work, sinks);
      find_arrays(running, work);
      find_shared(running, work);
      engine::make_fills(work);
    }
    const bool plain = prepared.sets.size() == 1 && prepared.sets.front().set->kept_columns == 0;
    if (shares_ && plain) {
      Work& work = prepared.sets.front();
      const Call call{plan(),          sizes(),         options_, table_.get(), work,
                      work.set->first, work.place->all, 0,        nullptr,      &sinks};
      engine::fold_each(call, first, last, turns, states);
    } else {
      for (std::size_t share = first; share < last; ++share) {
        if (shares_) go_to(share);
        if (turns.begin) turns.begin(share);
        for (Work& work : prepared.sets) {
          if (turns.begin) engine::make_fills(work);
          fold_set(work, states, sinks);
        }
        turns.end(share, states);
      }
    }
    put_down(running, sinks);
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
    std::int64_t bytes = 0;  // that it took from the room
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

  // A round in the same way.
  struct Prepared {
    const std::map<NodeId, std::vector<Tensor>>& constants;
    std::vector<Work> sets;
    Encoded result;
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
  bool reads() const { return engine::is_read(table_.get()); }

  // The engines inside a block read the table of the one around it.
  static EngineOptions without_copies(EngineOptions options) {
    options.copies = nullptr;
    return options;
  }

  // Records that are read where they lie are laid out when it shows that the run is a long one. How many rounds follow nobody
  // knows: by then reading them in place has cost about as much more as laying them out does.
  void lay_out_table() {
    constexpr int rounds_in_place = 12;
    if (options_.copies == nullptr || !reads() || rounds_read_ > rounds_in_place) return;
    if (++rounds_read_ <= rounds_in_place) return;
    constexpr auto block = static_cast<std::int64_t>(RecordTable::kept_records);
    const std::int64_t records = table_->records();
    if (shares_ || options_.block_records != block || records < block) return;
    const std::int64_t bytes = (records + block - 1) / block * block *
                               static_cast<std::int64_t>(table_->columns() * sizeof(double));
    if (options_.copies->fetch_sub(bytes) >= bytes) {
      if (const auto copy = table_->laid_out()) {
        table_ = copy;
        copied_ = bytes;
        return;
      }
    }
    *options_.copies += bytes;
  }

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
    make_sinks(work, sinks);
    find_arrays(running, work);
    if (work.place->cut.records > 0) {
      find_shared(running, work);
      engine::make_fills(work);
    }
    fold_set(work, states, sinks);
  }

  // The records at work, with everything there that their program reads.
  void fold_set(Work& work, std::vector<MergeState>& states, const Sinks& sinks) {
    const SetProgram& set = *work.set;
    const Cut& cut = work.place->cut;
    if (cut.records == 0) return engine::take_zeros(work, states);
    // What is too large for memory has no room for more of it.
    Kept* kept = reads() ? nullptr : place_to_keep(work);
    const bool again = kept != nullptr && still_right(*kept, work);
    Call call{
        plan(), sizes(),           options_, table_.get(), work, again ? set.again : set.first,
        cut,    work.place->first, nullptr,  &sinks};
    if (kept != nullptr) {
      kept->made.resize(std::max(kept->made.size(), share_ + 1));
      kept->made[share_].valid = again;
      kept->columns.reserve(work.place->all.blocks * set.kept_columns * cut.stride);
      call.kept = kept->columns.data();
    }
    engine::fold(call, states);
    if (kept == nullptr || again) return;
    Kept::Made& made = kept->made[share_];
    made.arrays = work.arrays;
    made.depends.clear();
    for (const std::uint32_t number : set.kept_depends)
      made.depends.push_back(*work.shared[number]);
    made.valid = true;
  }

  // The arrays that a set's program reads, or their columns in the table.
  void find_arrays(Running& running, Work& work) {
    if (work.arrays_of == arrays_given_) return;  // one client after the other reads the same
    work.arrays.clear();
    work.table_columns.clear();
    bool given = true;
    for (const NodeId id : work.set->tables.inputs) {
      const std::optional<std::string> name = table_name(id);
      work.arrays.push_back(name ? nullptr : array(running, id));
      work.table_columns.push_back(name ? table_->inputs().find(*name)->second.first : 0);
      given = given && arrays_.count(id) != 0;
    }
    work.arrays_of = given ? arrays_given_ : 0;
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

  // Where what a set keeps is, or may be from now on; none where there is nothing to keep, or no room for it.
  Kept* place_to_keep(const Work& work) {
    if (work.set->kept_columns == 0) return nullptr;
    const std::pair key(work.round->number, work.set->record_set);
    if (const auto known = kept_.find(key); known != kept_.end()) return &known->second;
    const auto bytes = static_cast<std::int64_t>(work.place->all.blocks * work.set->kept_columns *
                                                 work.place->all.stride * sizeof(double));
    if (options_.room != nullptr && options_.room->fetch_sub(bytes) < bytes) {
      *options_.room += bytes;
      return nullptr;
    }
    Kept& place = kept_[key];
    place.bytes = bytes;
    return &place;
  }

  void forget_kept() {
    for (const auto& [key, kept] : kept_) {
      if (options_.room != nullptr) *options_.room += kept.bytes;
    }
    kept_.clear();
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

  const std::string& record_set_of(const Merge& merge) const {
    return engine::record_set_of(program(), program().graph[merge.fold]);
  }
  std::shared_ptr<const Encoders> encoders_;
  EngineOptions options_;
  std::shared_ptr<const Shares> shares_;  // of several clients or batches
  std::size_t share_ = 0;                 // the one at work, inside a block
  engine::Places places_;
  std::vector<engine::Place*> shared_places_;  // those of several clients or batches
  std::map<NodeId, Array> arrays_;             // of inputs that are not read from a table
  std::uint64_t arrays_given_ = 1;             // how often they changed
  std::shared_ptr<const RecordTable> table_;
  int rounds_read_ = 0;                        // in which it was read where it lies
  std::int64_t copied_ = 0;                    // bytes of its copy
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
void Engine::encode_shares(const Round& round, std::size_t first, std::size_t last,
                           const Received& received, const Turns& turns) {
  impl_->encode_shares(round, first, last, received, turns);
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
