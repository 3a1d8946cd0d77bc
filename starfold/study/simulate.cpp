#include "starfold/study/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "starfold/base/error.h"
#include "starfold/base/parallel.h"
#include "starfold/base/suggest.h"
#include "starfold/base/utf8.h"
#include "starfold/study/study.h"
#include "starfold/tensor/philox.h"

namespace starfold {

// Random bits for one number of one array: nothing else decides what is drawn, so the order of drawing
// does not matter.
class RandomStream {
 public:
  using result_type = std::uint32_t;
  RandomStream(std::uint64_t seed, std::uint32_t array, std::uint64_t number)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
        counter_{static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32U),
                 array, 0} {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() {
    if (used_ == bits_.size()) {
      bits_ = philox4x32_10(counter_, key_);
      ++counter_[3];
      used_ = 0;
    }
    return bits_[used_++];
  }

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter bits_{};
  std::size_t used_ = 4;
};

namespace {

using Draw = std::function<double(RandomStream&)>;
using Parameters = std::vector<double>;

// Draws by a distribution of the standard library, from a fresh copy so that nothing is carried over.
template <typename Standard>
Draw drawing(Standard standard) {
  return [standard](RandomStream& random) {
    Standard fresh = standard;
    return static_cast<double>(fresh(random));
  };
}

// Box and Muller's transform: two random words for each number are less work than rejecting some.
Draw draw_normal(double mean, double deviation) {
  return [mean, deviation](RandomStream& random) {
    const auto word = [&random] {
      return (static_cast<double>(random()) + static_cast<double>(random()) * 0x1p32 + 0.5) *
             0x1p-64;
    };
    const double radius = std::sqrt(-2 * std::log(word()));
    constexpr double turn = 6.283185307179586;
    return mean + deviation * radius * std::cos(turn * word());
  };
}

// One row per distribution.
struct Family {
  const char* name;
  const char* usage;
  std::size_t parameters;
  bool (*valid)(const Parameters&);
  Draw (*make)(const Parameters&);
};

const Family families[] = {
    {"normal", "normal(mean, deviation)", 2, [](const Parameters& p) { return p[1] > 0; },
     [](const Parameters& p) { return draw_normal(p[0], p[1]); }},
    {"uniform", "uniform(least, most)", 2, [](const Parameters& p) { return p[0] < p[1]; },
     [](const Parameters& p) {
       return drawing(std::uniform_real_distribution<double>(p[0], p[1]));
     }},
    {"bernoulli", "bernoulli(probability)", 1,
     [](const Parameters& p) { return p[0] >= 0 && p[0] <= 1; },
     [](const Parameters& p) { return drawing(std::bernoulli_distribution(p[0])); }},
    {"poisson", "poisson(mean)", 1, [](const Parameters& p) { return p[0] > 0 && p[0] <= 1e9; },
     [](const Parameters& p) { return drawing(std::poisson_distribution<std::int64_t>(p[0])); }},
    {"geometric", "geometric(mean)", 1, [](const Parameters& p) { return p[0] > 0; },
     [](const Parameters& p) {
       return drawing(std::geometric_distribution<std::int64_t>(1 / (1 + p[0])));
     }},
    {"exponential", "exponential(mean)", 1, [](const Parameters& p) { return p[0] > 0; },
     [](const Parameters& p) { return drawing(std::exponential_distribution<double>(1 / p[0])); }},
    {"lognormal", "lognormal(median, sigma)", 2,
     [](const Parameters& p) { return p[0] > 0 && p[1] > 0; },
     [](const Parameters& p) {
       return Draw([draw = draw_normal(std::log(p[0]), p[1])](RandomStream& random) {
         return std::exp(draw(random));
       });
     }},
    {"integers", "integers(least, most)", 2,
     [](const Parameters& p) {
       return p[0] <= p[1] && p[0] == std::floor(p[0]) && p[1] == std::floor(p[1]);
     },
     [](const Parameters& p) {
       return drawing(std::uniform_int_distribution<std::int64_t>(static_cast<std::int64_t>(p[0]),
                                                                  static_cast<std::int64_t>(p[1])));
     }},
};

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// Parts between commas that are not inside parentheses.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      std::abs(value) > 1e15)
    return std::nullopt;
  return value;
}

Distribution parse_distribution(const std::string& key, const std::string& text) {
  if (const std::optional<double> constant = number_of(text))
    return {text, [value = *constant](RandomStream&) { return value; }};
  const std::size_t open = text.find('(');
  const std::string name = trimmed(text.substr(0, open));
  std::vector<std::string> names;
  for (const Family& family : families) {
    names.emplace_back(family.name);
    if (name != family.name) continue;
    Parameters parameters;
    if (open != std::string::npos && text.back() == ')') {
      for (const std::string& part : split(text.substr(open + 1, text.size() - open - 2)))
        parameters.push_back(number_of(part).value_or(std::nan("")));
    }
    const bool numbers = std::none_of(parameters.begin(), parameters.end(),
                                      [](double value) { return std::isnan(value); });
    if (parameters.size() != family.parameters || !numbers || !family.valid(parameters))
      throw StudyError(
          fmt::format("--simulate {}={}: write {}", key, printable(text), family.usage));
    return {text, family.make(parameters)};
  }
  std::string list;
  for (const Family& family : families) list += fmt::format(", {}", family.usage);
  const std::string suggestion = nearest(name, names);
  throw StudyError(fmt::format(
      "--simulate {}={}: {}; there is: a number{}", key, printable(text),
      suggestion.empty() ? "no such distribution" : fmt::format("did you mean {}?", suggestion),
      list));
}

std::int64_t whole_number(const std::string& key, const std::string& text, double least,
                          double most) {
  const std::optional<double> value = number_of(text);
  if (!value || *value < least || *value > most || *value != std::floor(*value)) {
    throw StudyError(fmt::format("--simulate {}={}: a whole number from {:.0f} to {:.0f} is needed",
                                 key, printable(text), least, most));
  }
  return static_cast<std::int64_t>(*value);
}

// The records of each client in one record set.
std::vector<std::int64_t> draw_counts(const Simulation& simulation, std::uint32_t array) {
  std::vector<std::int64_t> counts;
  double total = 0;
  for (std::int64_t client = 0; client < simulation.clients; ++client) {
    RandomStream random(simulation.seed, array, static_cast<std::uint64_t>(client));
    const double count = std::floor(simulation.records.draw(random));
    total += count;
    if (!(count >= 0 && total <= 1e15)) {
      throw RunError(fmt::format(
          "records={} gives {}", simulation.records.text,
          count < 0 ? "a client fewer than 0 records" : "more records than can be counted"));
    }
    counts.push_back(static_cast<std::int64_t>(count));
  }
  return counts;
}

void fill(Tensor& tensor, const Simulation& simulation, const Distribution& distribution,
          std::uint32_t array, int threads) {
  const auto parts = static_cast<std::size_t>(std::max(threads, 1));
  const std::size_t count = tensor.data.size();
  in_parallel(parts, parts, [&](std::size_t part) {
    for (std::size_t i = part * count / parts; i < (part + 1) * count / parts; ++i) {
      RandomStream random(simulation.seed, array, i);
      tensor.data[i] = distribution.draw(random);
    }
  });
}

Shape shape_of(const ir::Input& input, const SizeValues& sizes, std::int64_t records) {
  Shape shape;
  for (const Dim& dim : input.type.dims) {
    if (dim.star) {
      shape.push_back(records);
      continue;
    }
    const std::optional<std::int64_t> extent = dim.size.evaluate(sizes);
    if (!extent) {
      std::string name = "it";
      for (const std::string& variable : dim.size.variables()) {
        if (sizes.count(variable) == 0) name = variable;
      }
      throw RunError(fmt::format(
          "input {} is {}, and nothing says what {} is in a simulation; add --set {}=10",
          input.name, input.type.to_string(), dim.size.to_string(), name));
    }
    if (*extent < 1)
      throw RunError(fmt::format("input {} is {}, but {} is {}", input.name, input.type.to_string(),
                                 dim.size.to_string(), *extent));
    shape.push_back(*extent);
  }
  return shape;
}

void check_inputs(const ir::Program& program, const Simulation& simulation) {
  std::vector<std::string> names;
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated()) names.push_back(input.name);
  }
  for (const auto& [name, distribution] : simulation.values) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string suggestion = nearest(name, names);
    throw StudyError(
        fmt::format("--simulate {}={}: the program has no federated input {}{}", printable(name),
                    distribution.text, printable(name),
                    suggestion.empty() ? "" : fmt::format("; did you mean {}?", suggestion)));
  }
}

}  // namespace

Simulation parse_simulation(const std::string& text) {
  Simulation simulation;
  std::map<std::string, std::string> given;
  for (const std::string& part : split(text)) {
    const std::size_t at = part.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == part.size()) {
      throw StudyError(fmt::format(
          "--simulate takes KEY=VALUE,... for example clients=1000,records=poisson(20); not {}",
          printable(part)));
    }
    if (!given.emplace(trimmed(part.substr(0, at)), trimmed(part.substr(at + 1))).second)
      throw StudyError(fmt::format("--simulate says {} twice", printable(part.substr(0, at))));
  }
  for (const char* key : {"clients", "records"}) {
    if (given.count(key) == 0)
      throw StudyError(
          fmt::format("--simulate needs {}, for example clients=1000,records=poisson(20)", key));
  }
  simulation.clients = whole_number("clients", given["clients"], 1, 1e8);
  simulation.records = parse_distribution("records", given["records"]);
  if (given.count("seed") != 0)
    simulation.seed = static_cast<std::uint64_t>(whole_number("seed", given["seed"], 0, 1e15));
  for (const auto& [key, value] : given) {
    if (key != "clients" && key != "records" && key != "seed")
      simulation.values.emplace(key, parse_distribution(key, value));
  }
  return simulation;
}

Pack simulate(const ir::Program& program, const Simulation& simulation, const SizeValues& sizes,
              std::int64_t room, int threads) {
  check_inputs(program, simulation);
  std::map<std::string, std::vector<std::int64_t>> counts;  // by record set
  std::map<std::string, std::int64_t> totals;
  double bytes = 0;
  std::uint32_t array = 0;
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const std::string& set = input.type.record_set();
    if (counts.count(set) == 0) {
      counts[set] = set == ir::client_set
                        ? std::vector<std::int64_t>(static_cast<std::size_t>(simulation.clients), 1)
                        : draw_counts(simulation, array++);
      for (const std::int64_t count : counts[set]) totals[set] += count;
    }
    double size = 8;
    for (const std::int64_t extent : shape_of(input, sizes, totals[set]))
      size *= static_cast<double>(extent);
    bytes += size;
  }
  // They lie in memory twice: as the engine lays them out, and as they were drawn, to find the client when
  // a round fails.
  if (2 * bytes > static_cast<double>(room)) {
    throw RunError(
        fmt::format("the simulated records take {:.1f} GB, and a run twice that, but {:.1f} GB are "
                    "there; simulate fewer, or give more with --memory",
                    bytes / 1e9, static_cast<double>(room) / 1e9));
  }
  Pack pack;
  pack.records.name = simulation.clients == 1
                          ? "client 1"
                          : fmt::format("{} simulated clients", simulation.clients);
  const Distribution standard = parse_distribution("", "normal(0,1)");
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const auto chosen = simulation.values.find(input.name);
    Tensor tensor(shape_of(input, sizes, totals[input.type.record_set()]));
    fill(tensor, simulation, chosen == simulation.values.end() ? standard : chosen->second, array++,
         threads);
    pack.records.arrays.emplace(input.name, std::move(tensor));
  }
  for (const auto& [record_set, own] : counts) {
    std::vector<std::int64_t>& ends = pack.ends[record_set];
    std::int64_t end = 0;
    for (const std::int64_t count : own) ends.push_back(end += count);
  }
  auto reported = counts.begin();
  if (reported != counts.end() && reported->first == ir::client_set && counts.size() > 1)
    ++reported;
  for (std::int64_t client = 0; client < simulation.clients; ++client) {
    const std::int64_t records =
        counts.empty() ? 0 : reported->second[static_cast<std::size_t>(client)];
    pack.clients.push_back(
        {fmt::format("client {}", client + 1), records, static_cast<std::size_t>(client)});
  }
  return pack;
}

}  // namespace starfold
