#include "starfold/runtime/pack.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"

namespace starfold {
namespace {

constexpr std::size_t few_clients = 16;        // not worth it
constexpr std::int64_t few_records = 1 << 15;  // more fill blocks of their own

// Whether the arrays of two clients differ in their number of records only.
bool alike(const ir::Program& program, const Client& a, const Client& b) {
  if (b.table) return false;
  std::map<std::string, std::int64_t> counts;
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const auto left = a.arrays.find(input.name);
    const auto right = b.arrays.find(input.name);
    if (left == a.arrays.end() || right == b.arrays.end()) return false;
    Shape shape = right->second.shape;
    if (shape.size() != input.type.rank() || left->second.shape.size() != shape.size())
      return false;
    const std::size_t axis = *input.type.record_axis();
    if (counts.emplace(input.type.record_set(), shape[axis]).first->second != shape[axis])
      return false;
    shape[axis] = left->second.shape[axis];
    if (shape != left->second.shape) return false;
  }
  return true;
}

// Whether a client's arrays fit the program.
bool binds(const ir::Program& program, const Client& client) {
  try {
    bind_client(program, client, {});
    return true;
  } catch (const RunError&) {
    return false;
  }
}

Tensor concatenate(const ir::Input& input, const std::vector<const Client*>& clients) {
  const std::size_t axis = *input.type.record_axis();
  std::vector<const Tensor*> parts;
  parts.reserve(clients.size());
  Shape shape = clients.front()->arrays.at(input.name).shape;
  shape[axis] = 0;
  for (const Client* client : clients) {
    parts.push_back(&client->arrays.find(input.name)->second);
    shape[axis] += parts.back()->shape[axis];
  }
  std::int64_t outer = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= shape[k];
  Tensor whole;
  whole.shape = std::move(shape);
  whole.data.clear();
  whole.data.reserve(static_cast<std::size_t>(element_count(whole.shape)));
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const Tensor* part : parts) {
      const std::int64_t length = static_cast<std::int64_t>(part->data.size()) / outer;
      whole.data.insert(whole.data.end(), part->data.begin() + o * length,
                        part->data.begin() + (o + 1) * length);
    }
  }
  return whole;
}

// The clients at these places.
Pack pack_together(const ir::Program& program, const std::vector<Client>& all,
                   const std::vector<std::size_t>& places) {
  Pack pack;
  pack.records.name = fmt::format("{} clients", places.size());
  std::vector<const Client*> clients;
  for (const std::size_t place : places) {
    clients.push_back(&all[place]);
    pack.clients.push_back({all[place].name, reported_records(program, all[place]), place});
  }
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated())
      pack.records.arrays.emplace(input.name, concatenate(input, clients));
  }
  return pack;
}

Pack alone(const ir::Program& program, Client client, std::size_t place) {
  Pack pack;
  pack.clients = {{client.name, reported_records(program, client), place}};
  pack.records = std::move(client);
  return pack;
}

}  // namespace

std::int64_t reported_records(const ir::Program& program, const Client& client) {
  const std::map<std::string, std::int64_t> counts = record_counts(program, client);
  return counts.empty() ? 0 : counts.begin()->second;
}

std::vector<Pack> pack_clients(const ir::Program& program, std::vector<Client> clients) {
  std::vector<std::size_t> small;
  bool fit = clients.size() > few_clients && binds(program, clients.front());
  for (std::size_t i = 0; fit && i < clients.size(); ++i) {
    fit = alike(program, clients.front(), clients[i]);
    if (fit && reported_records(program, clients[i]) < few_records) small.push_back(i);
  }
  std::vector<Pack> packs;
  const bool together = fit && small.size() > few_clients;
  if (together) packs.push_back(pack_together(program, clients, small));
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (!together || reported_records(program, clients[i]) >= few_records)
      packs.push_back(alone(program, std::move(clients[i]), i));
  }
  return packs;
}

}  // namespace starfold
