// The playground's two questions: what a program is, and what it gives on three made-up hospitals. Text in, JSON out. Compiled to
// WebAssembly by tools/playground: checker, planner and reference evaluator as they are, the mathematics by the portable
// functions of exact runs, so that no library of the machine is needed.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "starfold/base/error.h"
#include "starfold/base/json.h"
#include "starfold/check/name_index.h"
#include "starfold/compile/compile.h"
#include "starfold/diag/render.h"
#include "starfold/diff/differentiate.h"
#include "starfold/plan/explain.h"
#include "starfold/plan/plan.h"
#include "starfold/runtime/reference.h"
#include "starfold/syntax/parser.h"
#include "starfold/tensor/portable.h"

namespace {

using namespace starfold;
using nlohmann::json;

constexpr std::int64_t made_up_size = 3;  // of every size that the program does not give

struct Hospital {
  const char* name;
  std::int64_t records;
  double shift;  // hospitals differ
};
constexpr Hospital hospitals[] = {{"athens", 40, 0.0}, {"bern", 25, 0.5}, {"cadiz", 60, -0.3}};

// Numbers that are the same in every browser.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  double uniform() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (static_cast<double>(state_ >> 11U) + 0.5) / 9007199254740992.0;
  }
  double normal() {  // the sum of twelve is near enough for made-up records
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  std::uint64_t state_;
};

json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

json numbers(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

std::int64_t extent(const Dim& dim, const SizeValues& sizes, std::int64_t records) {
  if (dim.star) return dim.record_set == ir::client_set ? 1 : records;
  const std::optional<std::int64_t> value = dim.size.evaluate(sizes);
  if (!value || *value < 1 || *value > 1000)
    throw RunError("the playground has no made-up values of size " + dim.size.to_string());
  return *value;
}

// One number per record is an outcome, 0 or 1; tables are normal, each column with its own mean and spread.
Tensor made_up(const Type& type, const SizeValues& sizes, std::int64_t records, double shift,
               Draws& draws) {
  Shape shape;
  for (const Dim& dim : type.dims) shape.push_back(extent(dim, sizes, records));
  if (element_count(shape) > 1'000'000)
    throw RunError("the playground makes no tables of this size");
  Tensor tensor(shape);
  const bool outcome = type.federated() && type.rank() == 1;
  for (double& value : tensor.data)
    value = outcome ? (draws.uniform() < 0.4 + 0.2 * shift ? 1.0 : 0.0) : draws.normal() + shift;
  return tensor;
}

json run(const ir::Program& program) {
  const portable::Scope portably(true);
  Settings settings;
  SizeValues sizes;
  for (const ir::SizeVariable& size : program.sizes) {
    sizes[size.name] = size.value.value_or(made_up_size);
  }
  Draws draws(20);
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated() && input.fallback == ir::no_node)
      settings.shared[input.name] = made_up(input.type, sizes, 0, 0, draws);
  }
  std::vector<Client> clients;
  json seen = json::array();
  for (const Hospital& hospital : hospitals) {
    Client client;
    client.name = hospital.name;
    for (const ir::Input& input : program.inputs) {
      if (input.type.federated())
        client.arrays[input.name] =
            made_up(input.type, sizes, hospital.records, hospital.shift, draws);
    }
    clients.push_back(std::move(client));
    seen.push_back({{"name", hospital.name}, {"records", hospital.records}});
  }
  const Results results = evaluate_reference(program, clients, settings);
  json outputs = json::array();
  for (const ir::Output& output : program.outputs) {
    const Tensor& value = results.outputs.at(output.name);
    outputs.push_back(
        {{"name", output.name}, {"shape", value.shape}, {"data", numbers(value.data)}});
  }
  json traces = json::object();
  for (const auto& [name, values] : results.traces) traces[name] = numbers(values);
  return {{"clients", std::move(seen)},
          {"outputs", std::move(outputs)},
          {"traces", std::move(traces)},
          {"iterations", results.iterations}};
}

// The way of compile(), with what functions of the library send placed at their calls: the page shows one file.
Compilation read(const char* text) {
  Compilation result;
  NameIndex names;
  const ast::File file =
      parse(result.sources, result.sources.add("program.fold", text), result.diagnostics);
  result.program = check(result.sources, file, {}, result.diagnostics, names);
  if (!result.ok()) return result;
  result.program = differentiate(result.program, result.diagnostics);
  result.diagnostics.sort();
  return result;
}

json types_of(const Compilation& compilation) {
  json types = json::array();
  for (const ir::NameType& name : compilation.program.name_types) {
    types.push_back({{"name", name.name},
                     {"type", name.type.to_string()},
                     {"line", compilation.sources[name.span.file].position(name.span.begin).line}});
  }
  return types;
}

// Kept until the next question: JavaScript copies it at once.
const char* keep(const json& answer) {
  static std::string text;
  text = json_line(answer);
  return text.c_str();
}

}  // namespace

extern "C" {

// {"ok", "diagnostics", "said", "types", "rounds"}; the last two as `starfold check --json` has them.
const char* starfold_check(const char* text) {
  try {
    const Compilation compilation = read(text);
    json answer = {{"ok", compilation.ok()},
                   {"diagnostics", render_json(compilation.diagnostics, compilation.sources)},
                   {"said", render_text(compilation.diagnostics, compilation.sources)},
                   {"types", types_of(compilation)},
                   {"rounds", json::array()}};
    if (compilation.ok())
      answer["rounds"] = exposure_json(make_plan(compilation.program), compilation.sources);
    return keep(answer);
  } catch (const std::exception& error) {
    return keep({{"ok", false}, {"said", error.what()}});
  }
}

// {"clients", "outputs", "traces", "iterations"}, or {"error"}.
const char* starfold_run(const char* text) {
  try {
    const Compilation compilation = read(text);
    if (!compilation.ok()) return keep({{"error", "the program has mistakes"}});
    return keep(run(compilation.program));
  } catch (const std::exception& error) {
    return keep({{"error", error.what()}});
  }
}

}  // extern "C"
