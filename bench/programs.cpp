// Starfold as a contestant: a program, its inputs from NAME.npy beside each other in a folder.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "bench/contestant.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/privacy/private_plan.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/machine.h"
#include "starfold/starfold.h"
#include "starfold/support/support.h"

namespace starfold::bench {
namespace {

std::shared_ptr<const CompiledProgram> load_program(const std::string& path,
                                                    const Planning& planning = {}) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  ProgramOptions options;
  options.planning = planning;
  auto program = compile_program({path, text, {}}, options);
  if (!program->plan) {
    throw std::runtime_error(
        fmt::format("{}: {}", path, program->compilation.diagnostics.items().front().message));
  }
  return program;
}

struct Inputs {
  Client pooled;  // all records
  Settings settings;
};

Inputs load_inputs(const ir::Program& program, const Arguments& arguments) {
  Inputs inputs;
  inputs.pooled.name = "all";
  for (const ir::Input& input : program.inputs) {
    const std::string path = fmt::format("{}/{}.npy", arguments.text("data"), input.name);
    if (input.type.federated()) {
      inputs.pooled.arrays[input.name] = read_npy(path, std::numeric_limits<std::int64_t>::max());
    } else if (std::ifstream(path)) {
      inputs.settings.shared[input.name] = read_npy(path, std::numeric_limits<std::int64_t>::max());
    }
  }
  for (const auto& [size, value] : arguments.beginning_with("size:"))
    inputs.settings.sizes[size] = std::stoll(value);
  return inputs;
}

Settings of_turn(Settings settings, int turn) {
  for (auto& [name, tensor] : settings.shared) {
    for (double& value : tensor.data) value *= 1 + turn / 1000.0;
  }
  return settings;
}

std::vector<double> values_of(const Results& results) {
  std::vector<double> values;
  for (const auto& [name, tensor] : results.outputs)
    values.insert(values.end(), tensor.data.begin(), tensor.data.end());
  return values;
}

// Client i of `count` gets its share of the records, which lie along the first axis of every array.
Client share_of(const Client& pooled, std::int64_t i, std::int64_t count) {
  Client client;
  client.name = fmt::format("c{}", i);
  for (const auto& [name, all] : pooled.arrays) {
    const std::int64_t records = all.shape.front();
    const std::int64_t from = records * i / count;
    const std::int64_t to = records * (i + 1) / count;
    const std::int64_t width = all.count() / std::max<std::int64_t>(records, 1);
    Shape shape = all.shape;
    shape.front() = to - from;
    client.arrays.emplace(name, Tensor(shape, std::vector<double>(all.data.begin() + from * width,
                                                                  all.data.begin() + to * width)));
  }
  return client;
}

// The rounds of a private run as one client and the server have them: sums on grids, noise, what the sums stand for.
Contestant make_private(const Arguments& arguments) {
  Planning planning;
  planning.additive = true;
  const auto program = load_program(arguments.text("program"), planning);
  auto inputs = std::make_shared<Inputs>(load_inputs(program->plan->program, arguments));
  const SizeValues sizes = bind_client(program->plan->program, inputs->pooled,
                                       bind_settings(program->plan->program, inputs->settings));
  privacy::Terms terms;
  terms.promise.delta = 1e-6;
  terms.clients = 1;
  auto plan = std::make_shared<const privacy::PrivatePlan>(program->plan, sizes, terms);
  EngineOptions options;
  options.threads = static_cast<int>(arguments.number("threads"));
  auto engine = std::make_shared<Engine>(plan->encoders(), sizes, inputs->pooled, options);
  inputs->pooled.arrays.clear();
  auto random = std::make_shared<privacy::RandomBits>();
  return [program, inputs, sizes, plan, engine, random](int turn) {
    const std::vector<const Round*> rounds = rounds_of(*plan->encoders());
    const Settings settings = of_turn(inputs->settings, turn);
    const Clock::time_point start = Clock::now();
    Machine machine(program->plan, sizes, settings);
    while (machine.round() != nullptr) {
      const auto number = static_cast<std::size_t>(machine.round()->number);
      std::map<ir::NodeId, Tensor> received;
      std::map<ir::NodeId, Tensor> sent = machine.to_send();
      for (std::size_t i = 0; i < rounds[number]->receives.size(); ++i)
        received.emplace(rounds[number]->receives[i], sent.at(machine.round()->receives[i]));
      std::vector<MergeState> states = engine->encode(*rounds[number], received);
      plan->add_noise(states, number, *random);
      plan->to_values(states, number);
      machine.absorb(states);
    }
    const double seconds = since(start);
    return Outcome{seconds, values_of(machine.results()), {}};
  };
}

}  // namespace

Contestant make_engine(const Arguments& arguments) {
  if (arguments.number("private", 0) != 0) return make_private(arguments);
  Planning planning;
  planning.exact = arguments.number("exact", 0) != 0;
  const auto program = load_program(arguments.text("program"), planning);
  const Plan& plan = *program->plan;
  auto inputs = std::make_shared<Inputs>(load_inputs(plan.program, arguments));
  const SizeValues sizes =
      bind_client(plan.program, inputs->pooled, bind_settings(plan.program, inputs->settings));
  EngineOptions options;
  options.threads = static_cast<int>(arguments.number("threads"));
  auto engine = std::make_shared<Engine>(program->plan, sizes, inputs->pooled, options);
  inputs->pooled.arrays.clear();  // the engine has laid out its own copy
  return [program, inputs, sizes, engine](int turn) {
    const Settings settings = of_turn(inputs->settings, turn);
    const Clock::time_point start = Clock::now();
    Machine machine(program->plan, sizes, settings);
    int rounds = 0;
    for (; machine.round() != nullptr; ++rounds)
      machine.absorb(engine->encode(*machine.round(), machine.to_send()));
    const double seconds = since(start);
    return Outcome{
        seconds, values_of(machine.results()), {{"rounds", static_cast<double>(rounds)}}};
  };
}

Contestant make_support(const Arguments& arguments) {
  const auto program = load_program(arguments.text("program"));
  const Plan& plan = *program->plan;
  auto inputs = std::make_shared<Inputs>(load_inputs(plan.program, arguments));
  const SizeValues sizes =
      bind_client(plan.program, inputs->pooled, bind_settings(plan.program, inputs->settings));
  EngineOptions options;
  options.threads = static_cast<int>(arguments.number("threads"));
  auto engine = std::make_shared<Engine>(program->plan, sizes, inputs->pooled, options);
  inputs->pooled.arrays.clear();
  auto support = std::make_shared<Support>(program->plan, sizes, *engine);
  return [program, inputs, sizes, engine, support](int turn) {
    Machine machine(program->plan, sizes, of_turn(inputs->settings, turn));
    double seconds = 0;
    double thin = 0;
    while (machine.round() != nullptr) {
      const Round& round = *machine.round();
      const auto received = machine.to_send();
      const std::vector<MergeState> states = engine->encode(round, received);
      const Clock::time_point start = Clock::now();
      thin += static_cast<double>(support->thin(round, received, states, 5, 1).size());
      seconds += since(start);
      machine.absorb(states);
    }
    return Outcome{seconds, values_of(machine.results()), {{"thin", thin}}};
  };
}

Contestant make_federation(const Arguments& arguments) {
  const auto program = load_program(arguments.text("program"));
  const Inputs inputs = load_inputs(program->plan->program, arguments);
  auto clients = std::make_shared<std::vector<Client>>();
  const std::int64_t count = arguments.number("clients", 1);
  for (std::int64_t i = 0; i < count; ++i) clients->push_back(share_of(inputs.pooled, i, count));
  const std::string time = arguments.text("time", "all");
  const int threads = static_cast<int>(arguments.number("threads"));
  // A limit that computes something else is not compared.
  const bool compared = arguments.text("values", "all") != "none";
  return [program, clients, settings = inputs.settings, time, threads, compared](int turn) {
    std::map<std::string, double> seconds;
    RunOptions options;
    options.threads = threads;
    options.watch = [&](const Progress& progress) {
      seconds["round"] = progress.round_seconds;
      seconds["rounds"] += progress.round_seconds;
    };
    // The run takes its clients' tables away with it. They are made up, so they may be packed.
    std::vector<Pack> packs = pack_clients(program->plan->program, *clients);
    const RunReport report = run_packs(program, std::move(packs), of_turn(settings, turn), options);
    seconds["all"] = report.seconds;
    return Outcome{seconds.at(time),
                   compared ? values_of(report.results) : std::vector<double>(),
                   {{"rounds", static_cast<double>(report.rounds)}}};
  };
}

}  // namespace starfold::bench
