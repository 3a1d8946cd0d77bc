#include "starfold/runtime/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "starfold/base/error.h"
#include "starfold/tensor/axis_view.h"

namespace starfold {
namespace {

using ir::NodeId;

constexpr std::size_t few_clients = 16;        // not worth it
constexpr std::int64_t few_records = 1 << 15;  // more fill blocks of their own
constexpr double numbers_of_a_part = 1 << 22;
constexpr double least_parts = 16;
constexpr double least_numbers = 4096;  // of a part: less is done before a thread wakes

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
  std::vector<const Tensor*> parts;
  parts.reserve(clients.size());
  for (const Client* client : clients) parts.push_back(&client->arrays.find(input.name)->second);
  return join_along(*input.type.record_axis(), parts);
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
    for (const auto& [record_set, count] : record_counts(program, all[place])) {
      std::vector<std::int64_t>& ends = pack.ends[record_set];
      ends.push_back((ends.empty() ? 0 : ends.back()) + count);
    }
  }
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated())
      pack.records.arrays.emplace(input.name, concatenate(input, clients));
  }
  return pack;
}

void require_names(const std::vector<Client>& clients) {
  std::set<std::string_view> names;
  for (const Client& client : clients) {
    if (!names.insert(client.name).second)
      throw RunError(fmt::format("two clients are named {}", client.name));
  }
}

Pack alone(const ir::Program& program, Client client, std::size_t place) {
  Pack pack;
  pack.clients = {{client.name, reported_records(program, client), place}};
  pack.records = std::move(client);
  return pack;
}

}  // namespace

std::vector<Pack> keep_apart(const ir::Program& program, std::vector<Client> clients) {
  std::vector<Pack> packs;
  packs.reserve(clients.size());
  for (Client& client : clients) packs.push_back(alone(program, std::move(client), packs.size()));
  return packs;
}

namespace {

std::shared_ptr<const Shares> shares_of(const Pack& pack, std::size_t first, std::size_t last) {
  auto shares = std::make_shared<Shares>();
  shares->clients = last - first;
  for (const auto& [record_set, ends] : pack.ends) {
    const std::int64_t before = first == 0 ? 0 : ends[first - 1];
    for (std::size_t i = first; i < last; ++i) shares->ends[record_set].push_back(ends[i] - before);
  }
  return shares;
}

// Clients first to last - 1 of a pack of several, as a pack.
Pack part_of(const ir::Program& program, const Pack& pack, std::size_t first, std::size_t last) {
  if (last - first == 1)
    return alone(program, unpack(program, pack, pack.records.arrays, first, last),
                 pack.clients[first].place);
  Pack part;
  part.told_apart = true;
  part.records = unpack(program, pack, pack.records.arrays, first, last);
  part.records.name =
      fmt::format("{} to {}", pack.clients[first].name, pack.clients[last - 1].name);
  const auto begin = pack.clients.begin();
  part.clients.assign(begin + static_cast<std::ptrdiff_t>(first),
                      begin + static_cast<std::ptrdiff_t>(last));
  part.ends = part.records.shares->ends;
  return part;
}

}  // namespace

Client unpack(const ir::Program& program, const Pack& pack, const Arrays& arrays, std::size_t first,
              std::size_t last) {
  Client part;
  part.name = last - first == 1 ? pack.clients[first].name : pack.records.name;
  if (pack.told_apart && last - first > 1) part.shares = shares_of(pack, first, last);
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const std::vector<std::int64_t>& ends = pack.ends.at(input.type.record_set());
    part.arrays.emplace(input.name,
                        slices_between(arrays.find(input.name)->second, *input.type.record_axis(),
                                       first == 0 ? 0 : ends[first - 1], ends[last - 1]));
  }
  return part;
}

std::int64_t reported_records(const ir::Program& program, const Client& client) {
  const std::map<std::string, std::int64_t> counts = record_counts(program, client);
  // What a client has once is not what it has records of.
  for (const auto& [record_set, count] : counts) {
    if (record_set != ir::client_set) return count;
  }
  return counts.empty() ? 0 : counts.begin()->second;
}

bool tells_clients_apart(const ir::Program& program) {
  if (!program.keeps.empty()) return true;
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.block || (node.federated() && node.type().record_set() == ir::client_set) ||
        (node.federated() && node.kind == ir::Kind::loop_param))
      return true;
  }
  return false;
}

std::vector<Pack> take_apart(const ir::Program& program, Pack pack) {
  std::vector<Pack> packs;
  if (pack.clients.size() < 2) {
    packs.push_back(std::move(pack));
    return packs;
  }
  for (std::size_t i = 0; i < pack.clients.size(); ++i) {
    Client client = unpack(program, pack, pack.records.arrays, i, i + 1);
    packs.push_back(alone(program, std::move(client), pack.clients[i].place));
  }
  return packs;
}

std::vector<Pack> in_parts(const ir::Program& program, Pack pack) {
  pack.told_apart = true;
  double numbers = 0;
  for (const auto& [name, array] : pack.records.arrays)
    numbers += static_cast<double>(array.count());
  // Enough parts for every thread to have some, and values per client that lie beside each other.
  const double most = std::clamp(numbers / least_parts, least_numbers, numbers_of_a_part);
  double records = 0;
  for (const auto& [record_set, ends] : pack.ends) records += static_cast<double>(ends.back());
  std::vector<Pack> parts;
  std::size_t first = 0;
  double so_far = 0;
  for (std::size_t i = 0; i < pack.clients.size(); ++i) {
    double own = 0;
    for (const auto& [record_set, ends] : pack.ends)
      own += static_cast<double>(ends[i] - (i == 0 ? 0 : ends[i - 1])) * numbers /
             std::max(records, 1.0);
    if (i > first && so_far + own > most) {
      parts.push_back(part_of(program, pack, first, i));
      first = i;
      so_far = 0;
    }
    so_far += own;
  }
  parts.push_back(part_of(program, pack, first, pack.clients.size()));
  return parts;
}

std::vector<Pack> pack_clients(const ir::Program& program, std::vector<Client> clients) {
  require_names(clients);
  std::vector<std::size_t> small;
  bool fit = clients.size() > few_clients && binds(program, clients.front());
  for (std::size_t i = 0; fit && i < clients.size(); ++i) {
    fit = alike(program, clients.front(), clients[i]);
    if (fit && reported_records(program, clients[i]) < few_records) small.push_back(i);
  }
  std::vector<Pack> packs;
  const bool together = fit && small.size() > few_clients;
  if (together && tells_clients_apart(program)) {
    packs = in_parts(program, pack_together(program, clients, small));
  } else if (together) {
    packs.push_back(pack_together(program, clients, small));
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (!together || reported_records(program, clients[i]) >= few_records)
      packs.push_back(alone(program, std::move(clients[i]), i));
  }
  return packs;
}

}  // namespace starfold
