// Random federations: arrays for the inputs of a generated program.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "starfold/runtime/apply.h"
#include "tests/laws/generator.h"

namespace starfold::laws {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double random_entry(Random& random, const InputSpec& input, bool special) {
  using Values = InputSpec::Values;
  if (special && random.chance(12)) {
    return random.pick(std::vector<double>{nan, inf, -inf, 0.0, -0.0, nan});
  }
  switch (input.values) {
    case Values::continuous:
      return random.uniform(-2, 2);
    case Values::positive:
      return random.uniform(0.5, 2);
    case Values::grid:
      return random.between(-4, 4) / 2.0;
    case Values::label:
      return random.between(1, 3);
    case Values::truth:
      return random.below(2);
    case Values::wide:
      return random.chance(5) ? 0.0
                              : random.pick(std::vector<double>{-1, 1}) *
                                    std::pow(10.0, random.uniform(-200, 200));
  }
  return 0;
}

Shape shape_with(const InputSpec& input, const SizeValues& sizes, std::int64_t records) {
  Shape shape;
  for (const Dim& dim : input.type.dims) {
    shape.push_back(dim.star ? records : *dim.size.evaluate(sizes));
  }
  return shape;
}

// How many records a client has; many clients have few each, so that max_records holds for all together.
int random_count(Random& random, int clients) {
  if (clients > 6) return random.below(3);
  switch (random.below(6)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
    case 3:
      return random.between(2, 4);
    default:
      return random.between(2, 10);
  }
}

// A record of a tensor: its entries in order.
std::vector<double> record_of(const Tensor& tensor, std::size_t axis, std::int64_t record) {
  std::int64_t inner = 1;
  for (std::size_t k = axis + 1; k < tensor.rank(); ++k) inner *= tensor.shape[k];
  const std::int64_t records = tensor.shape[axis];
  std::vector<double> entries;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (i / inner % records == record) entries.push_back(tensor.data[static_cast<std::size_t>(i)]);
  }
  return entries;
}

Tensor of_records(const std::vector<std::vector<double>>& records, const Shape& shape,
                  std::size_t axis) {
  Tensor tensor(shape);
  std::int64_t inner = 1;
  for (std::size_t k = axis + 1; k < tensor.rank(); ++k) inner *= tensor.shape[k];
  std::vector<std::size_t> used(records.size());
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const auto record = static_cast<std::size_t>(i / inner % shape[axis]);
    tensor.data[static_cast<std::size_t>(i)] = records[record][used[record]++];
  }
  return tensor;
}

}  // namespace

Tensor random_tensor(Random& random, const InputSpec& input, Shape shape, bool special) {
  Tensor tensor(std::move(shape));
  for (double& value : tensor.data) value = random_entry(random, input, special);
  return tensor;
}

Federation generate_federation(Random& random, const GeneratedProgram& program) {
  Federation federation;
  // More than sixteen now and then: whatever treats many clients in another way shows there.
  const int clients = random.chance(6) ? random.between(17, 24) : random.between(1, 6);
  const bool all_empty = random.chance(4);
  for (int c = 0; c < clients; ++c) {
    Client client{fmt::format("c{}", c + 1), {}};
    std::map<std::string, int> counts;
    for (const InputSpec& input : program.inputs) {
      if (!input.type.federated()) continue;
      const auto [count, fresh] = counts.emplace(input.type.record_set(), 0);
      if (fresh) count->second = all_empty ? 0 : random_count(random, clients);
      client.arrays[input.name] = random_tensor(
          random, input, shape_with(input, program.sizes, count->second), program.special);
    }
    federation.clients.push_back(std::move(client));
  }
  for (const InputSpec& input : program.inputs) {
    if (input.type.federated() || (input.has_default && random.chance(50))) continue;
    federation.settings.shared[input.name] =
        random_tensor(random, input, shape_with(input, program.sizes, 0), program.special);
  }
  for (const auto& [name, value] : program.declared) {
    if (random.chance(30)) federation.settings.sizes[name] = value;
  }
  // Sizes that only defaults know of must be set.
  for (const auto& [name, value] : program.sizes) {
    if (program.declared.count(name) == 0 && random.chance(5))
      federation.settings.sizes[name] = value;
  }
  for (const auto& [name, value] : program.sizes) {
    bool fixed = program.declared.count(name) != 0;
    for (const InputSpec& input : program.inputs) {
      const bool given =
          input.type.federated() || federation.settings.shared.count(input.name) != 0;
      for (const Dim& dim : input.type.dims)
        fixed = fixed || (given && !dim.star && dim.size == Size::variable(name));
    }
    if (!fixed) federation.settings.sizes[name] = value;
  }
  return federation;
}

Federation deal_again(Random& random, const GeneratedProgram& program, const Federation& federation,
                      int clients) {
  Federation dealt;
  dealt.settings = federation.settings;
  for (int c = 0; c < clients; ++c) dealt.clients.push_back({fmt::format("d{}", c + 1), {}});
  std::map<std::string, std::vector<int>> owners;  // by record set: the new client of each record
  for (const InputSpec& input : program.inputs) {
    if (!input.type.federated()) continue;
    const std::size_t axis = *input.type.record_axis();
    std::vector<std::vector<double>> records;
    for (const Client& client : federation.clients) {
      const Tensor& tensor = client.arrays.at(input.name);
      for (std::int64_t r = 0; r < tensor.shape[axis]; ++r)
        records.push_back(record_of(tensor, axis, r));
    }
    const auto [owner, fresh] = owners.emplace(input.type.record_set(), std::vector<int>{});
    if (fresh) {
      for (std::size_t r = 0; r < records.size(); ++r)
        owner->second.push_back(random.below(clients));
    }
    for (int c = 0; c < clients; ++c) {
      std::vector<std::vector<double>> own;
      for (std::size_t r = 0; r < records.size(); ++r) {
        if (owner->second[r] == c) own.push_back(records[r]);
      }
      const Shape shape = shape_with(input, program.sizes, static_cast<std::int64_t>(own.size()));
      dealt.clients[static_cast<std::size_t>(c)].arrays[input.name] = of_records(own, shape, axis);
    }
  }
  return dealt;
}

Federation deal_unevenly(Random& random, const GeneratedProgram& program,
                         const Federation& federation, int clients) {
  Federation dealt;
  dealt.settings = federation.settings;
  // By record set and client: which of all records it has.
  std::map<std::string, std::vector<std::vector<int>>> chosen;
  for (int c = 0; c < clients; ++c) dealt.clients.push_back({fmt::format("d{}", c + 1), {}});
  for (const InputSpec& input : program.inputs) {
    if (!input.type.federated()) continue;
    const std::size_t axis = *input.type.record_axis();
    std::vector<std::vector<double>> records;
    for (const Client& client : federation.clients) {
      const Tensor& tensor = client.arrays.at(input.name);
      for (std::int64_t r = 0; r < tensor.shape[axis]; ++r)
        records.push_back(record_of(tensor, axis, r));
    }
    const auto [own, fresh] =
        chosen.emplace(input.type.record_set(), std::vector<std::vector<int>>{});
    for (int c = 0; c < clients && fresh; ++c) {
      std::vector<int>& places = own->second.emplace_back();
      const int count = random.chance(15)  ? 0
                        : random.chance(2) ? static_cast<int>(random.between(500, 1100))
                                           : static_cast<int>(random.between(1, 9));
      for (int r = 0; r < count && !records.empty(); ++r)
        places.push_back(random.below(static_cast<int>(records.size())));
    }
    for (int c = 0; c < clients; ++c) {
      std::vector<std::vector<double>> taken;
      for (const int place : own->second[static_cast<std::size_t>(c)])
        taken.push_back(records[static_cast<std::size_t>(place)]);
      const Shape shape = shape_with(input, program.sizes, static_cast<std::int64_t>(taken.size()));
      dealt.clients[static_cast<std::size_t>(c)].arrays[input.name] =
          of_records(taken, shape, axis);
    }
  }
  return dealt;
}

}  // namespace starfold::laws
