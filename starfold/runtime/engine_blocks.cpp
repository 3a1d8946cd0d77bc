#include "starfold/runtime/engine_blocks.h"

#include <algorithm>
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

std::map<std::string, std::int64_t> counts_of(const Cuts& cuts) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [record_set, cut] : cuts)
    counts[record_set] = static_cast<std::int64_t>(cut.records);
  return counts;
}

// Some records of an array in this order, as an array of their own.
Array gather(const Buffer& from, const Cut& cut, std::size_t cells,
             std::span<const std::uint32_t> records, const Cut& to) {
  auto result = std::make_shared<Buffer>();
  result->allocate(to.blocks * cells * to.stride);
  for (std::size_t b = 0; b < to.blocks; ++b) {
    const std::size_t length = to.length(b);
    double* block = result->data() + b * cells * to.stride;
    for (std::size_t r = 0; r < to.stride; ++r) {
      if (r >= length) {
        for (std::size_t c = 0; c < cells; ++c) block[c * to.stride + r] = 0;
        continue;
      }
      const std::size_t record = records[b * to.block + r];
      const double* source =
          from.data() + record / cut.block * cells * cut.stride + record % cut.block;
      for (std::size_t c = 0; c < cells; ++c) block[c * to.stride + r] = source[c * cut.stride];
    }
  }
  return result;
}

// A plan to its end over the records of an engine. `results` are the shared outputs, by name.
Results run_plan(const std::shared_ptr<const Plan>& plan, const SizeValues& sizes,
                 const Settings& settings, Engine& engine) {
  Machine machine(plan, sizes, settings);
  while (machine.round() != nullptr) {
    Engine::Encoded encoded = engine.encode_all(*machine.round(), machine.to_send());
    machine.absorb(encoded.states, std::move(encoded.passes));
  }
  return machine.results();
}

}  // namespace

const Cut& client_cut() {
  static const Cut cut(1, 1);
  return cut;
}

Array array_of_row(const Tensor& row) {
  const std::size_t stride = client_cut().stride;
  auto array = std::make_shared<Buffer>(row.data.size() * stride);
  for (std::size_t c = 0; c < row.data.size(); ++c) array->data()[c * stride] = row.data[c];
  return array;
}

Tensor row_of_array(const Buffer& array, Shape shape) {
  Tensor row(std::move(shape));
  for (std::size_t c = 0; c < row.data.size(); ++c)
    row.data[c] = array.data()[c * client_cut().stride];
  return row;
}

Blocks::Blocks(const Plan& plan, const SizeValues& sizes, EngineOptions options, Compiled encoders)
    : plan_(plan), sizes_(sizes), options_(options), encoders_(std::move(encoders)) {}

// Hands a block its operands; false when they are those of the last time.
bool Blocks::see(Run& run, NodeId id, const Around& around) const {
  const ir::Local& block = *node(id).block;
  std::vector<Tensor> shared;
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < block.body.inputs.size(); ++i) {
    const NodeId operand = node(id).args[block.first_input() + i];
    const Type& type = node(operand).type();
    if (!type.federated()) {
      shared.push_back(around.shared(operand));
    } else if (!block.batches && type.record_set() == ir::client_set) {
      shared.push_back(row_of_array(*around.array(operand), cell_shape(type, sizes_)));
    } else if (!block.batches && around.table_name(operand)) {
      run.engine->give_table(i, *around.table_name(operand));
    } else {
      arrays.push_back(around.array(operand));
      if (!block.batches) run.engine->give(i, arrays.back());
    }
  }
  const bool same = run.valid && arrays == run.arrays && shared.size() == run.shared.size() &&
                    std::equal(shared.begin(), shared.end(), run.shared.begin(), same_bits);
  run.shared = std::move(shared);
  run.arrays = std::move(arrays);
  run.valid = same;
  return !same;
}

const std::vector<Array>& Blocks::each_client(NodeId id, const Cuts& cuts, const Around& around) {
  Run& run = runs_[id];
  const std::shared_ptr<const Plan>& plan = plan_.blocks.at(id);
  if (!run.engine)
    run.engine = std::make_unique<Engine>(encoders_(id),
                                          Engine::Records{counts_of(cuts), around.table}, options_);
  if (!see(run, id, around)) return run.results;
  Settings settings;
  std::size_t next = 0;
  for (const ir::Input& input : plan->program.inputs) {
    if (!input.type.federated()) settings.shared.emplace(input.name, run.shared[next++]);
  }
  const Results results = run_plan(plan, sizes_, settings, *run.engine);
  run.results.clear();
  for (std::size_t i = 0; i < plan->program.outputs.size(); ++i) {
    const ir::Output& output = plan->program.outputs[i];
    run.results.push_back(plan->program.graph[output.node].federated()
                              ? run.engine->result(i)
                              : array_of_row(results.outputs.at(output.name)));
  }
  run.valid = true;
  return run.results;
}

std::vector<Tensor> Blocks::batches(NodeId id, const Cuts& cuts, const Around& around) {
  const ir::Node& batches = node(id);
  const ir::Local& block = *batches.block;
  const std::shared_ptr<const Plan>& plan = plan_.blocks.at(id);
  const std::size_t size = batch_size(around.shared(batches.args[0]).item(), batches.span);
  const Seed seed = seed_of(around.shared(batches.args[1]).item(), "batches");
  const Cut& cut = cuts.at(block.record_set);
  Run& run = runs_[id];
  see(run, id, around);
  const std::vector<std::uint32_t> order = shuffled(cut.records, seed, Stream::batches);
  Settings settings;
  std::size_t next = 0;
  for (const ir::Input& input : plan->program.inputs) {
    if (!input.type.federated()) settings.shared.emplace(input.name, run.shared[next++]);
  }
  const auto state = [&](std::size_t i) -> Tensor& {
    return settings.shared.find(plan->program.inputs[i].name)->second;
  };
  for (std::size_t first = 0; first < cut.records; first += size) {
    const std::span<const std::uint32_t> records =
        std::span(order).subspan(first, std::min(size, cut.records - first));
    std::map<std::string, std::int64_t> counts = counts_of(cuts);
    counts[block.record_set] = static_cast<std::int64_t>(records.size());
    if (!run.engine) {
      run.engine =
          std::make_unique<Engine>(encoders_(id), Engine::Records{counts, nullptr}, options_);
    } else {
      run.engine->count(counts);
    }
    const Cut drawn(counts.at(block.record_set), options_.block_records);
    std::size_t array = 0;
    for (std::size_t i = 0; i < plan->program.inputs.size(); ++i) {
      const Type& type = plan->program.inputs[i].type;
      if (!type.federated()) continue;
      const Array& whole = run.arrays[array++];
      run.engine->give(i, type.record_set() == block.record_set
                              ? gather(*whole, cut, cells_of(type, sizes_), records, drawn)
                              : whole);
    }
    const Results results = run_plan(plan, sizes_, settings, *run.engine);
    for (std::size_t i = 0; i < block.states; ++i)
      state(i) = results.outputs.at(plan->program.outputs[i].name);
    if (plan->program.outputs.size() > block.states &&
        results.outputs.at(plan->program.outputs.back().name).item() != 0)
      break;
  }
  std::vector<Tensor> states;
  for (std::size_t i = 0; i < block.states; ++i) states.push_back(state(i));
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
