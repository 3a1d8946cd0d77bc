// Derivatives in tests: programs run in every way there is, compared with central differences.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <stdexcept>

#include "starfold/compile/compile.h"
#include "starfold/federation/local.h"
#include "starfold/plan/plan.h"
#include "starfold/runtime/reference.h"

namespace starfold::testing {

// Data and shared values for a program.
struct World {
  std::vector<Client> clients;
  Settings settings;
};

inline Tensor random_tensor(Shape shape, std::mt19937_64& random, double low = 0.2,
                            double high = 1.3) {
  Tensor tensor(std::move(shape));
  std::uniform_real_distribution<double> uniform(low, high);
  for (double& value : tensor.data) value = uniform(random);
  return tensor;
}

inline std::string messages(const Compilation& compilation) {
  std::string text;
  for (const Diagnostic& d : compilation.diagnostics.items())
    text += fmt::format("{}: {}\n", info(d.code).id, d.message);
  return text;
}

inline ir::Program program_of(const std::string& text) {
  Compilation compilation = compile("test.fold", text);
  if (!compilation.ok()) throw std::invalid_argument(messages(compilation) + text);
  return std::move(compilation.program);
}

inline void expect_near(const Tensor& got, const Tensor& want, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what;
  double scale = 1;
  for (const double value : want.data) {
    if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
  }
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    if (!std::isfinite(want.data[i])) {
      ASSERT_TRUE(std::isnan(want.data[i]) ? std::isnan(got.data[i]) : got.data[i] == want.data[i])
          << what;
      continue;
    }
    ASSERT_NEAR(got.data[i], want.data[i], tolerance * scale) << what << "\nentry " << i;
  }
}

// The outputs by the definition; the federated runs, optimized or not, must agree with it.
inline std::map<std::string, Tensor> run_everywhere(const std::string& text, const World& world) {
  const ir::Program program = program_of(text);
  const Results reference = evaluate_reference(program, world.clients, world.settings);
  for (const bool optimize : {false, true}) {
    ProgramOptions program_options;
    program_options.planning.optimize = optimize;
    ProgramText source;
    source.name = "test.fold";
    source.text = text;
    RunOptions options;
    options.threads = 1;
    options.block_records = 2;
    const RunReport report =
        run_local(compile_program(source, program_options), world.clients, world.settings, options);
    for (const auto& [name, tensor] : reference.outputs) {
      expect_near(report.results.outputs.at(name), tensor, 1e-9,
                  text + (optimize ? "\noptimized " : "\nplain ") + name);
    }
  }
  return reference.outputs;
}

// d output / d input by central differences of order 8, of shape [output, input].
inline Tensor differences(const ir::Program& program, const std::string& output,
                          const std::string& input, const World& world, double h = 4e-3) {
  constexpr double weights[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
  World moved = world;
  Tensor& at = moved.settings.shared.find(input)->second;
  const Tensor value =
      evaluate_reference(program, world.clients, world.settings).outputs.at(output);
  Shape shape = value.shape;
  shape.insert(shape.end(), at.shape.begin(), at.shape.end());
  Tensor result(shape);
  const std::size_t columns = at.data.size();
  for (std::size_t j = 0; j < columns; ++j) {
    const double centre = at.data[j];
    for (int step = -4; step <= 4; ++step) {
      if (step == 0) continue;
      at.data[j] = centre + step * h;
      const Tensor there =
          evaluate_reference(program, moved.clients, moved.settings).outputs.at(output);
      const double weight = (step > 0 ? 1 : -1) * weights[std::abs(step) - 1] / h;
      for (std::size_t i = 0; i < there.data.size(); ++i)
        result.data[i * columns + j] += weight * there.data[i];
    }
    at.data[j] = centre;
  }
  return result;
}

// What the clients of a plan compute, counted.
struct Cost {
  std::map<std::string, int> ops;  // by name, in encoders and folds
  int folds = 0;
  std::int64_t widest_cell = 0;  // numbers per record of the widest computed encoder
  std::int64_t message = 0;      // numbers sent per client, all rounds once
};

inline std::int64_t cell_count(const Type& type, const SizeValues& sizes) {
  std::int64_t count = 1;
  for (const Dim& dim : type.dims) count *= dim.star ? 1 : *dim.size.evaluate(sizes);
  return count;
}

inline Cost cost_of(const std::string& text, const SizeValues& sizes) {
  const Plan plan = make_plan(program_of(text));
  const ir::Graph& graph = plan.program.graph;
  Cost cost;
  std::set<ir::NodeId> seen;
  for (const Round* round : rounds_of(plan)) {
    for (const ir::NodeId id : round->encoders) {
      if (graph[id].kind != ir::Kind::apply || !seen.insert(id).second) continue;
      ++cost.ops[graph[id].op->name];
      cost.widest_cell = std::max(cost.widest_cell, cell_count(graph[id].type(), sizes));
    }
    for (const Merge& merge : round->merges) {
      ++cost.folds;
      ++cost.ops[graph[merge.fold].op->name];
      cost.message += cell_count(graph[merge.fold].type(), sizes);
    }
  }
  return cost;
}

}  // namespace starfold::testing
