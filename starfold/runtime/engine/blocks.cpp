#include "starfold/runtime/engine/blocks.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/machine.h"
#include "starfold/tensor/bits.h"
#include "starfold/tensor/random_bits.h"

namespace starfold::engine {
namespace {

using ir::NodeId;

std::size_t cells_of(const Type& type, const SizeValues& sizes) {
  return static_cast<std::size_t>(element_count(cell_shape(type, sizes)));
}

std::map<std::string, std::int64_t> counts_of(const Places& places) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [record_set, place] : places)
    counts[record_set] = static_cast<std::int64_t>(place.cut.records);
  return counts;
}

// Records of an array in this order, as an array that is cut in another way. Column by column: one lies in the cache
// while it is read in any order.
void gather(const Buffer& from, const Place& place, std::size_t cells,
            std::span<const std::uint32_t> order, const Cut& to, Buffer& result) {
  const Cut& cut = place.cut;
  std::vector<std::size_t> places(order.size());  // in a column
  for (std::size_t r = 0; r < order.size(); ++r)
    places[r] = order[r] / cut.block * cells * cut.stride + order[r] % cut.block;
  for (std::size_t c = 0; c < cells; ++c) {
    const double* column = from.data() + (place.first * cells + c) * cut.stride;
    for (std::size_t b = 0; b < to.blocks; ++b) {
      const std::size_t* const at = places.data() + to.start(b);
      double* out = result.data() + (b * cells + c) * to.stride;
      for (std::size_t r = 0; r < to.length(b); ++r) out[r] = column[at[r]];
    }
  }
}

std::vector<std::uint32_t> in_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

}  // namespace

const Cut& client_cut() {
  static const Cut cut(1, 1);
  return cut;
}

CompiledBlock compile_block(const Plan& plan, NodeId node, const SizeValues& sizes) {
  const std::shared_ptr<const Plan>& inside = plan.blocks.at(node);
  CompiledBlock block{std::make_shared<const Encoders>(inside, sizes), nullptr};
  const ir::Node& local = plan.program.graph[node];
  if (local.block->batches) return block;
  std::vector<bool> rows;
  for (const NodeId operand : local.args) {
    const Type& type = plan.program.graph[operand].type();
    rows.push_back(type.federated() && type.record_set() == ir::client_set);
  }
  block.lifted = lift(*inside, sizes, rows);
  return block;
}

Blocks::Blocks(const Plan& plan, const SizeValues& sizes, EngineOptions options, Compiled compiled)
    : plan_(plan), sizes_(sizes), options_(options), compiled_(std::move(compiled)) {}

// Hands a block its operands; false when they are those of the last time.
bool Blocks::see(Run& run, NodeId id, const Around& around) const {
  const ir::Local& block = *node(id).block;
  const std::size_t count = block.body.inputs.size();
  const bool first = run.inputs.size() != count;
  run.shared.resize(count);
  run.arrays.resize(count);
  run.rows.resize(count);
  run.inputs.assign(count, nullptr);
  bool same = run.valid && !first;
  for (std::size_t i = 0; i < count; ++i) {
    const NodeId operand = node(id).args[i];
    const Type& type = node(operand).type();
    if (!type.federated()) {
      const Tensor& value = around.shared(operand);
      if (!same || !same_bits(run.shared[i], value)) {
        run.shared[i] = value;
        same = false;
      }
      run.inputs[i] = &run.shared[i];
      continue;
    }
    const bool row = type.record_set() == ir::client_set;
    if (const auto name = row ? std::nullopt : around.table_name(operand)) {
      run.engine->give_table(i, *name);
      continue;
    }
    Array array = around.array(operand);
    same = same && array == run.arrays[i];
    run.arrays[i] = std::move(array);
    if (row) {
      if (first) run.rows[i] = Tensor(cell_shape(type, sizes_));
      run.inputs[i] = &run.rows[i];
    } else {
      run.engine->give(i, run.arrays[i]);
    }
  }
  return !same;
}

// Who has no records, or computes without them, meets no block that would look.
void Blocks::look_at_stop() const {
  if (options_.stop != nullptr && *options_.stop) throw RunError("the run was stopped");
}

// A plan to its end, over the records that the engine works on.
void Blocks::run_plan(Run& run, NodeId id) const {
  if (run.machine) {
    run.machine->restart(run.inputs);
  } else {
    run.machine.emplace(plan_.blocks.at(id), run.inputs, sizes_, options_.stop);
  }
  Machine& machine = *run.machine;
  const Engine::Received received = [&machine](NodeId value) { return machine.known(value); };
  while (machine.round() != nullptr) {
    Engine::Encoded& encoded = run.engine->encode_again(*machine.round(), received);
    machine.exchange(encoded.states, std::move(encoded.passes));
  }
}

const std::vector<Array>& Blocks::each_client(NodeId id, const Places& places,
                                              const Around& around) {
  Run& run = runs_[id];
  const ir::Program& body = plan_.blocks.at(id)->program;
  if (!run.engine)
    run.engine = std::make_unique<Engine>(
        compiled_(id).encoders, Engine::Records{counts_of(places), around.table, around.shares},
        options_);
  if (!see(run, id, around)) return run.results;
  run.valid = false;
  const Cut& cut = places.at(ir::client_set).all;
  // Room for what they give, which is used again when nobody else has it.
  std::vector<std::shared_ptr<Buffer>>& rows = run.made;
  rows.resize(body.outputs.size());
  run.results.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ir::Node& output = body.graph[body.outputs[i].node];
    if (output.federated()) continue;
    const std::size_t size = cut.blocks * cells_of(output.type(), sizes_) * cut.stride;
    if (!rows[i] || rows[i].use_count() > 1 || rows[i]->size() < size)
      rows[i] = std::make_shared<Buffer>(size);
  }
  const bool apart = around.shares != nullptr;
  if (!compiled_(id).lifted || !options_.at_once) {
    one_by_one(run, id, cut, apart);
  } else {
    try {
      all_at_once(run, id, cut, apart);
    } catch (const RunError&) {
      // What goes wrong at one client is told as it goes wrong there.
      if (options_.stop != nullptr && *options_.stop) throw;
      run.engine->forget();
      one_by_one(run, id, cut, apart);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    run.results.push_back(rows[i] ? Array(rows[i]) : run.engine->result(i));
  run.valid = true;
  return run.results;
}

void Blocks::all_at_once(Run& run, NodeId id, const Cut& cut, bool apart) const {
  std::vector<const Tensor*> shared(run.inputs.size(), nullptr);
  std::vector<const Buffer*> rows(run.inputs.size(), nullptr);
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const bool own = run.inputs[i] == &run.rows[i];
    if (own) rows[i] = run.arrays[i].get();
    if (!own) shared[i] = run.inputs[i];
  }
  if (apart) run.engine->work_on(0);
  run_lifted(*plan_.blocks.at(id), sizes_, *compiled_(id).lifted,
             {*run.engine, cut, shared, rows, options_.stop}, run.made);
}

// The plan again for each client, with the same machine.
void Blocks::one_by_one(Run& run, NodeId id, const Cut& cut, bool apart) const {
  const std::vector<std::shared_ptr<Buffer>>& rows = run.made;
  // A client's row: from one number to the next it is cut.stride.
  std::size_t block = 0;
  std::size_t at = 0;
  const auto row_in = [&](const Buffer& array, std::size_t numbers) {
    return array.data() + block * numbers * cut.stride + at;
  };
  for (std::size_t client = 0; client < cut.records; ++client) {
    look_at_stop();
    if (apart) run.engine->work_on(client);
    for (std::size_t i = 0; i < run.inputs.size(); ++i) {
      if (run.inputs[i] != &run.rows[i]) continue;
      std::vector<double>& row = run.rows[i].data;
      const double* from = row_in(*run.arrays[i], row.size());
      for (std::size_t c = 0; c < row.size(); ++c) row[c] = from[c * cut.stride];
    }
    run_plan(run, id);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i]) continue;
      const std::vector<double>& value = run.machine->output(i).data;
      double* to = row_in(*rows[i], value.size());
      for (std::size_t c = 0; c < value.size(); ++c) to[c * cut.stride] = value[c];
    }
    if (++at < cut.block) continue;
    at = 0;
    ++block;
  }
}

// Batches are shares of a client's records: each is worked on as a client of several is.
void Blocks::cut_batches(Run& run, NodeId id, const Places& places, std::size_t size) {
  const std::string& record_set = node(id).block->record_set;
  const std::size_t records = places.at(record_set).cut.records;
  if (run.engine && run.drawn == records && run.size == size) return;
  auto shares = std::make_shared<Shares>();
  std::vector<std::int64_t>& ends = shares->ends[record_set];
  for (std::size_t end = 0; end < records;) {
    end = std::min(end + size, records);
    ends.push_back(static_cast<std::int64_t>(end));
  }
  shares->clients = ends.size();
  if (run.engine) {
    run.engine->cut(counts_of(places), shares);
  } else {
    run.engine = std::make_unique<Engine>(
        compiled_(id).encoders, Engine::Records{counts_of(places), nullptr, shares}, options_);
  }
  run.drawn = records;
  run.size = size;
}

void Blocks::draw_batches(Run& run, NodeId id, const Places& places, const Around& around,
                          const Seed& seed) const {
  const ir::Local& block = *node(id).block;
  std::vector<std::uint32_t> order;
  run.engine->forget();
  // One after the other: who draws next on this thread has no more use for what was drawn before.
  thread_local std::vector<std::shared_ptr<Buffer>> drawn_records;
  drawn_records.resize(std::max(drawn_records.size(), block.body.inputs.size()));
  for (std::size_t i = 0; i < block.body.inputs.size(); ++i) {
    const NodeId operand = node(id).args[block.first_input() + i];
    const Type& type = node(operand).type();
    if (!type.federated()) continue;
    // Other record sets stay as they are.
    const Place& place = places.at(type.record_set());
    const bool drawn = type.record_set() == block.record_set;
    if (drawn && order.empty()) order = shuffled(place.cut.records, seed, Stream::batches);
    const Cut& to = run.engine->cut_of(type.record_set());
    const std::size_t cells = cells_of(type, sizes_);
    if (!drawn_records[i]) drawn_records[i] = std::make_shared<Buffer>();
    drawn_records[i]->reserve(to.blocks * cells * to.stride);
    gather(*around.array(operand), place, cells, drawn ? order : in_order(place.cut.records), to,
           *drawn_records[i]);
    run.engine->give(i, drawn_records[i]);
  }
}

std::vector<Tensor> Blocks::batches(NodeId id, const Places& places, const Around& around) {
  const ir::Node& batches = node(id);
  const ir::Local& block = *batches.block;
  const Place& place = places.at(block.record_set);
  const std::size_t size = batch_size(around.shared(batches.args[0]).item(), batches.span);
  const Seed seed = seed_of(around.shared(batches.args[1]).item(), "batches");
  std::vector<Tensor> states;
  Run& run = runs_[id];
  run.inputs.assign(block.body.inputs.size(), nullptr);
  states.reserve(block.states);
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const NodeId operand = batches.args[block.first_input() + i];
    if (node(operand).federated()) continue;
    run.inputs[i] = &around.shared(operand);
    if (i >= block.states) continue;
    states.push_back(*run.inputs[i]);
    run.inputs[i] = &states[i];
  }
  if (place.cut.records == 0) return states;
  cut_batches(run, id, places, size);
  draw_batches(run, id, places, around, seed);
  const bool may_end = block.body.outputs.size() > block.states;
  const std::size_t count = (place.cut.records + size - 1) / size;
  for (std::size_t batch = 0; batch < count; ++batch) {
    look_at_stop();
    run.engine->work_on(batch);
    run_plan(run, id);
    const bool end = may_end && run.machine->output(block.states).item() != 0;
    run.machine->take_outputs(states);
    if (end) break;
  }
  return states;
}

Array PrivateStates::find(const Key& key, const Clock& clock) const {
  const auto values = values_.find(key);
  if (values == values_.end()) return nullptr;
  auto at = values->second.upper_bound(clock);
  if (at == values->second.begin()) return nullptr;
  --at;
  // Of another iteration of a loop around: this loop begins anew.
  const bool same =
      std::equal(clock.begin(), clock.end() - 1, at->first.begin(), at->first.end() - 1);
  return same ? at->second : nullptr;
}

void PrivateStates::put(const Key& key, const Clock& clock, Array value, const Clock& now) {
  std::map<Clock, Array>& values = values_[key];
  auto read = values.upper_bound(now);
  if (read != values.begin()) values.erase(values.begin(), std::prev(read));
  values.erase(values.upper_bound(clock), values.end());
  values[clock] = std::move(value);
}

}  // namespace starfold::engine
