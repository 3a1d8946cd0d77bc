#include "starfold/runtime/engine/lift.h"

#include <algorithm>
#include <set>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/engine/chunks.h"
#include "starfold/tensor/portable.h"

namespace starfold::engine {
namespace {

using ir::Kind;
using ir::NodeId;

// A client that has more numbers than this to compute, or to lay down, has enough to do by itself.
constexpr std::size_t most_numbers = 1 << 14;

class Lifting {
 public:
  Lifting(const Plan& plan, const SizeValues& sizes, const std::vector<bool>& rows)
      : plan_(plan), program_(plan.program), sizes_(sizes), roles_(program_.graph.size()) {
    differs_.resize(program_.graph.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i]) lay_down(program_.inputs[i].node);
    }
  }

  std::shared_ptr<const Lifted> run() {
    if (!program_.traces.empty()) return nullptr;
    for (const starfold::Step& step : plan_.body.steps) {
      const auto* const round = std::get_if<Round>(&step.action);
      if (round == nullptr || !round->passes.empty()) return nullptr;
      result_.rounds.push_back(round);
    }
    find_readers();
    if (!decode(plan_.body.prelude)) return nullptr;
    for (std::size_t i = 0; i < result_.rounds.size(); ++i) {
      for (const Merge& merge : result_.rounds[i]->merges) lay_down(merge.fold);
      if (!decode(plan_.body.steps[i].decoder)) return nullptr;
    }
    for (const Lifted::Value& value : result_.values) result_.numbers += value.cells;
    std::size_t scratch = 0;
    for (const StoreProgram& decoder : result_.decoders)
      scratch = std::max(scratch, decoder.set.first.scratch_columns);
    result_.numbers += scratch;
    if (result_.numbers > most_numbers) return nullptr;
    return std::make_shared<const Lifted>(std::move(result_));
  }

 private:
  std::size_t cells_of(NodeId id) const {
    return static_cast<std::size_t>(element_count(cell_shape(program_.graph[id].type(), sizes_)));
  }
  // Columns that a step names.
  std::size_t numbers_made_by(const ir::Node& node) const {
    const auto cells = static_cast<std::size_t>(element_count(cell_shape(node.type(), sizes_)));
    if (node.op->family != Family::matmul) return cells;
    return cells *
           static_cast<std::size_t>(cell_shape(program_.graph[node.args[0]].type(), sizes_).back());
  }

  void lay_down(NodeId id) {
    differs_[id] = true;
    roles_[id] = Role::array;
    result_.places.emplace(id, result_.values.size());
    result_.values.push_back({id, cells_of(id)});
  }

  // The steps that read each value: 0 is what comes before the first round, then each round and what follows it.
  void find_readers() {
    const auto note = [&](const std::vector<NodeId>& nodes, std::size_t step) {
      for (const NodeId id : nodes) {
        for (const NodeId arg : program_.graph[id].args) last_read_[arg] = step;
      }
    };
    note(plan_.body.prelude, 0);
    for (std::size_t i = 0; i < result_.rounds.size(); ++i) {
      for (const NodeId id : result_.rounds[i]->receives) last_read_[id] = i + 1;
      note(plan_.body.steps[i].decoder, i + 1);
    }
    for (const ir::Output& output : program_.outputs)
      last_read_[output.node] = result_.rounds.size() + 1;
  }

  // The nodes of one step; false when one of them cannot be a map.
  bool decode(const std::vector<NodeId>& nodes) {
    const std::size_t step = result_.decoders.size();
    std::vector<NodeId> stored;
    std::vector<NodeId> computed;
    for (const NodeId id : nodes) {
      const ir::Node& node = program_.graph[id];
      if (differs_[id]) continue;  // given
      if (std::none_of(node.args.begin(), node.args.end(),
                       [&](NodeId arg) { return differs_[arg]; })) {
        if (node.kind != Kind::input) result_.common.push_back(id);
        continue;
      }
      if (node.kind != Kind::apply || node.types.size() != 1) return false;
      numbers_ += numbers_made_by(node);
      if (numbers_ > most_numbers) return false;
      differs_[id] = true;
      roles_[id] = Role::computed;
      computed.push_back(id);
      if (last_read_[id] > step) stored.push_back(id);
    }
    result_.decoders.push_back(compile_stores(plan_, roles_, stored, sizes_));
    for (const NodeId id : computed) roles_[id] = Role::other;
    for (const NodeId id : stored) lay_down(id);
    return true;
  }

  const Plan& plan_;
  const ir::Program& program_;
  const SizeValues& sizes_;
  Roles roles_;
  std::vector<bool> differs_;
  std::map<NodeId, std::size_t> last_read_;
  std::size_t numbers_ = 0;  // that the decoders compute
  Lifted result_;
};

// So many numbers of a group of clients stay in the cache from one step to the next.
constexpr std::size_t numbers_of_a_group = 1 << 16;

class LiftedRun {
 public:
  LiftedRun(const Plan& plan, const SizeValues& sizes, const Lifted& lifted, const Clients& clients,
            const std::vector<std::shared_ptr<Buffer>>& results)
      : plan_(plan),
        program_(plan.program),
        sizes_(sizes),
        lifted_(lifted),
        clients_(clients),
        results_(results) {
    const std::size_t fitting =
        numbers_of_a_group / std::max<std::size_t>(lifted.numbers, 1) / kernels::kPad;
    group_ = std::clamp(fitting * kernels::kPad, kernels::kPad, clients.cut.stride);
    compute_common();
    make_room();
    for (std::size_t i = 0; i < lifted.decoders.size(); ++i) make_frame(i);
    for (const Round* round : lifted.rounds) {
      std::vector<std::size_t>& places = received_.emplace_back();
      for (const NodeId id : round->receives) {
        const auto place = lifted.places.find(id);
        if (place == lifted.places.end()) continue;
        places.push_back(place->second);
        own_[id] = Tensor(cell_shape(program_.graph[id].type(), sizes));
      }
    }
  }

  void run() {
    for (std::size_t b = 0; b < clients_.cut.blocks; ++b) {
      for (std::size_t at = 0; at < clients_.cut.length(b); at += group_)
        run_group(b, at, std::min(group_, clients_.cut.length(b) - at));
    }
  }

 private:
  void compute_common() {
    for (std::size_t i = 0; i < clients_.shared.size(); ++i) {
      if (clients_.shared[i] != nullptr) common_[program_.inputs[i].node] = {*clients_.shared[i]};
    }
    const portable::Scope scope(plan_.exact);
    for (const NodeId id : lifted_.common) compute_shared(program_, id, sizes_, common_);
  }

  // One after the other in memory that the next block on this thread uses again.
  void make_room() {
    thread_local Buffer room;
    std::size_t columns = lifted_.numbers;
    for (const StoreProgram& decoder : lifted_.decoders) columns += decoder.set.tables.fills.size();
    room.reserve(columns * group_);
    next_ = room.data();
    for (const Lifted::Value& value : lifted_.values) values_.push_back(take(value.cells));
  }
  double* take(std::size_t columns) {
    double* const taken = next_;
    next_ += columns * group_;
    return taken;
  }

  void make_frame(std::size_t i) {
    const StoreProgram& decoder = lifted_.decoders[i];
    const Tables& tables = decoder.set.tables;
    Frame frame;
    frame.program = &program_;
    frame.sizes = &sizes_;
    frame.exact = plan_.exact;
    frame.stop = clients_.stop;
    frame.stride = group_;
    numbers_.push_back(std::make_unique<Tensor>(
        Shape{static_cast<std::int64_t>(tables.numbers.size())}, tables.numbers));
    frame.shared.push_back(numbers_.back().get());
    for (std::size_t s = 1; s < tables.shared.size(); ++s)
      frame.shared.push_back(&common_.at(tables.shared[s]).front());
    double* const fills = take(tables.fills.size());
    for (std::size_t f = 0; f < tables.fills.size(); ++f)
      std::fill_n(fills + f * group_, group_,
                  frame.shared[tables.fills[f].shared]->data[tables.fills[f].entry]);
    frame.sources = {nullptr, fills, nullptr};
    for (const NodeId input : tables.inputs) frame.sources.push_back(value_of(input));
    for (const Store& store : decoder.round.stores) frame.sinks.push_back(value_of(store.node));
    frames_.push_back(std::move(frame));
  }

  double* value_of(NodeId id) const { return values_[lifted_.places.at(id)]; }

  void run_group(std::size_t block, std::size_t at, std::size_t count) {
    const std::size_t stride = clients_.cut.stride;
    const auto place = [&](std::size_t cells) { return block * cells * stride + at; };
    for (std::size_t i = 0; i < clients_.rows.size(); ++i) {
      if (clients_.rows[i] == nullptr) continue;
      const std::size_t value = lifted_.places.at(program_.inputs[i].node);
      const std::size_t cells = lifted_.values[value].cells;
      const double* const from = clients_.rows[i]->data() + place(cells);
      for (std::size_t c = 0; c < cells; ++c)
        std::copy_n(from + c * stride, count, values_[value] + c * group_);
    }
    decode(0, count);
    for (std::size_t i = 0; i < lifted_.rounds.size(); ++i) {
      encode(i, clients_.cut.start(block) + at, count);
      decode(i + 1, count);
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i]) continue;
      const NodeId output = program_.outputs[i].node;
      const auto value = lifted_.places.find(output);
      const bool differs = value != lifted_.places.end();
      const std::size_t cells =
          differs ? lifted_.values[value->second].cells : common_.at(output).front().data.size();
      double* const to = results_[i]->data() + place(cells);
      for (std::size_t c = 0; c < cells; ++c) {
        if (differs) {
          std::copy_n(values_[value->second] + c * group_, count, to + c * stride);
        } else {
          std::fill_n(to + c * stride, count, common_.at(output).front().data[c]);
        }
      }
    }
  }

  void decode(std::size_t step, std::size_t count) {
    if (clients_.stop != nullptr && *clients_.stop) throw RunError("the run was stopped");
    const portable::Scope scope(plan_.exact);
    const StoreProgram& decoder = lifted_.decoders[step];
    Frame& frame = frames_[step];
    frame.sources[scratch] = next_;
    frame.records = count;
    frame.outside.clear();
    engine::run(decoder.set.first, frame);
    check_outside(program_, sizes_, frame.outside);
  }

  // A round at each client of the group: what it receives is its own, and so is what it has folded.
  void encode(std::size_t number, std::size_t first, std::size_t count) {
    const Round& round = *lifted_.rounds[number];
    const Engine::Received received = [&](NodeId id) -> const Tensor* {
      if (const auto own = own_.find(id); own != own_.end()) return &own->second;
      const auto common = common_.find(id);
      return common == common_.end() ? nullptr : &common->second.front();
    };
    Engine::Turns turns;
    if (!received_[number].empty()) {
      turns.begin = [&](std::size_t client) {
        for (const std::size_t value : received_[number]) {
          std::vector<double>& own = own_.at(lifted_.values[value].node).data;
          const double* const from = values_[value] + (client - first);
          for (std::size_t c = 0; c < own.size(); ++c) own[c] = from[c * group_];
        }
      };
    }
    std::vector<double*> folds;
    for (const Merge& merge : round.merges) folds.push_back(value_of(merge.fold));
    turns.end = [&](std::size_t client, const std::vector<MergeState>& states) {
      for (std::size_t i = 0; i < folds.size(); ++i) {
        const Monoid& monoid = *round.merges[i].monoid;
        // A state that is its value needs no other.
        const bool plain = monoid.finish == monoids::sum.finish;
        const Tensor made = plain ? Tensor() : monoid.finish(states[i]);
        const std::vector<double>& value = plain ? states[i].front().data : made.data;
        double* const to = folds[i] + (client - first);
        for (std::size_t c = 0; c < value.size(); ++c) to[c * group_] = value[c];
      }
    };
    clients_.engine.encode_shares(round, first, first + count, received, turns);
  }

  const Plan& plan_;
  const ir::Program& program_;
  const SizeValues& sizes_;
  const Lifted& lifted_;
  const Clients& clients_;
  const std::vector<std::shared_ptr<Buffer>>& results_;
  std::size_t group_ = 0;  // clients at once
  SharedValues common_;
  double* next_ = nullptr;
  std::vector<double*> values_;  // by value of the lifted plan: its columns
  std::vector<std::unique_ptr<Tensor>> numbers_;
  std::vector<Frame> frames_;                       // by decoder
  std::vector<std::vector<std::size_t>> received_;  // by round: which values,
  std::map<NodeId, Tensor> own_;                    // and what one client has of them
};

}  // namespace

std::shared_ptr<const Lifted> lift(const Plan& plan, const SizeValues& sizes,
                                   const std::vector<bool>& rows) {
  return Lifting(plan, sizes, rows).run();
}

void run_lifted(const Plan& plan, const SizeValues& sizes, const Lifted& lifted,
                const Clients& clients, const std::vector<std::shared_ptr<Buffer>>& results) {
  LiftedRun(plan, sizes, lifted, clients, results).run();
}

}  // namespace starfold::engine
