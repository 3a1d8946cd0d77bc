// A federation that was made up: how many clients, how many records each has, and what is in them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "starfold/runtime/pack.h"

namespace starfold {

class RandomStream;

// Where random numbers come from, and how it was written: "poisson(20)".
struct Distribution {
  std::string text;
  std::function<double(RandomStream&)> draw;
};

struct Simulation {
  std::int64_t clients = 0;
  Distribution records;                        // of a client in each record set
  std::map<std::string, Distribution> values;  // by federated input; standard normal elsewhere
  std::uint64_t seed = 1;
};

// Reads "clients=1000,records=poisson(20),y=bernoulli(0.3),seed=7". StudyError when it is wrong.
Simulation parse_simulation(const std::string& text);

// Makes the clients of a simulation, packed. The same simulation gives the same records, whatever the
// number of threads. RunError when a size has no value, or the records would take more than `room` bytes.
Pack simulate(const ir::Program& program, const Simulation& simulation, const SizeValues& sizes,
              std::int64_t room, int threads);

}  // namespace starfold
