#include "starfold/support/sums.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "starfold/runtime/apply.h"
#include "starfold/runtime/machine.h"

namespace starfold::support {
namespace {

using ir::NodeId;

std::string name(const char* what, std::size_t i) { return fmt::format("{} {}", what, i); }

std::shared_ptr<const Plan> sums_of(const SupportProgram& support, const std::vector<bool>& lists,
                                    Squares how) {
  ir::Program program = support.program;
  for (std::size_t i = 0; i < support.terms.size(); ++i) {
    if (!lists[i]) continue;
    const Terms& terms = support.terms[i];
    ir::Builder build(program, program.graph[terms.left].span);
    program.outputs.push_back({name("sizes", i), sum_of_sizes(build, terms), {}});
    if (how == Squares::none) continue;
    const bool root = how == Squares::root;
    const NodeId squares = root ? root_of_squares(build, terms) : sum_of_squares(build, terms);
    program.outputs.push_back({name("squares", i), squares, {}});
  }
  return std::make_shared<const Plan>(make_plan(program));
}

// Runs a plan over the records of one client.
std::map<std::string, Tensor> run_alone(const std::shared_ptr<const Plan>& plan,
                                        const SizeValues& sizes, const Settings& settings,
                                        Engine& engine) {
  Machine machine(plan, sizes, settings);
  while (machine.round() != nullptr)
    machine.absorb(engine.encode(*machine.round(), machine.to_send()));
  return {machine.results().outputs.begin(), machine.results().outputs.end()};
}

}  // namespace

bool Sums::sound(const std::vector<bool>& lists) const {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t cell = 0; lists[i] && cell < sizes[i].data.size(); ++cell) {
      const double size = sizes[i].data[cell];
      const double square = squares[i].data[cell];
      if (size != 0 && std::isfinite(size) && !(square > 1e-280 && square < 1e300)) return false;
    }
  }
  return true;
}

double Sums::effective(std::size_t terms, std::size_t cell) const {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const double size = sizes[terms].data[cell];
  if (size == 0) return 0;
  const double square = squares[terms].data[cell];
  const double ratio = size / (how == Squares::root ? square : std::sqrt(square));
  return std::isfinite(size) && std::isfinite(ratio) ? ratio * ratio : nan;
}

Sums Summation::run(const SupportProgram& support, const std::vector<bool>& lists,
                    const Settings& settings, const SizeValues& sizes, const Engine& engine) {
  bool all_there = engine_.has_value();
  lists_.resize(lists.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    all_there = all_there && (lists_[i] || !lists[i]);
    lists_[i] = lists_[i] || lists[i];
  }
  if (!all_there) {
    plan_ = sums_of(support, lists_, how_);
    engine_.emplace(std::make_shared<const Encoders>(plan_, sizes), engine, most_);
  }
  const std::map<std::string, Tensor> found = run_alone(plan_, sizes, settings, *engine_);
  Sums sums;
  sums.how = how_;
  sums.sizes.resize(lists.size());
  sums.squares.resize(lists.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (!lists_[i]) continue;
    sums.sizes[i] = found.at(name("sizes", i));
    if (how_ != Squares::none) sums.squares[i] = found.at(name("squares", i));
  }
  return sums;
}

InputBoxes look_at_inputs(const Plan& plan, const SizeValues& sizes, const Engine& engine) {
  ir::Program program;
  program.signature = plan.program.signature;
  program.sizes = plan.program.sizes;
  std::set<std::uint32_t> read;
  for (const Round* round : rounds_of(plan)) {
    for (const NodeId id : round->encoders) {
      if (plan.program.graph[id].kind == ir::Kind::input) read.insert(plan.program.graph[id].index);
    }
  }
  for (const std::uint32_t index : read) {
    const ir::Input& input = plan.program.inputs[index];
    if (!input.type.federated()) continue;
    ir::Node node;
    node.kind = ir::Kind::input;
    node.index = static_cast<std::uint32_t>(program.inputs.size());
    node.types = {input.type};
    const NodeId id = program.graph.add(std::move(node));
    program.inputs.push_back({input.name, input.type, id, ir::no_node, input.span});
    ir::Builder build(program, input.span);
    const auto star = static_cast<std::int64_t>(*input.type.record_axis());
    for (const char* end : {"min", "max"})
      program.outputs.push_back(
          {fmt::format("{} {}", end, input.name), build.call(end, {id}, {star}), input.span});
  }
  const auto looks = std::make_shared<const Plan>(make_plan(program));
  Engine looking(std::make_shared<const Encoders>(looks, sizes), engine);
  const std::map<std::string, Tensor> found = run_alone(looks, sizes, {}, looking);
  InputBoxes boxes;
  for (const ir::Input& input : program.inputs) {
    const Tensor& lower = found.at("min " + input.name);
    const Tensor& upper = found.at("max " + input.name);
    Box& box = boxes[input.name];
    box.shape = lower.shape;
    box.shape->insert(box.shape->begin() + static_cast<std::ptrdiff_t>(*input.type.record_axis()),
                      1);
    box.entries.clear();
    for (std::size_t i = 0; i < lower.data.size(); ++i) {
      const Interval range{lower.data[i], upper.data[i]};
      box.entries.push_back(range.lo <= range.hi ? range : Interval());
    }
  }
  return boxes;
}

}  // namespace starfold::support
