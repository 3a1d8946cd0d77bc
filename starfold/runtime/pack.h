// Many small clients whose records lie in common arrays, for simulations. Every plan gives the same
// answer for any cut of the records (thm:shared-state-factorization), so who simulates need not keep clients
// apart. No message of a packed client ever exists; whoever reports on a run says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "starfold/runtime/bind.h"

namespace starfold {

struct PackedClient {
  std::string name;
  std::int64_t records = 0;
  std::size_t place = 0;  // among all clients of the run
};

// Clients one after the other; `records` holds what all of them have, under one name.
struct Pack {
  Client records;
  std::vector<PackedClient> clients;
  // By record set: where the records of each client end. Empty for a client that is alone.
  std::map<std::string, std::vector<std::int64_t>> ends;
  // Whether the program asks which records are whose: then `records` tells.
  bool told_apart = false;
};

// Every client by itself: it is asked and answers alone.
std::vector<Pack> keep_apart(const ir::Program& program, std::vector<Client> clients);

// Puts small clients together when there are many; each other client gets a pack of its own. Clients
// whose arrays do not fit each other stay apart, so that whoever runs them can say who is wrong.
// RunError when two clients share a name.
std::vector<Pack> pack_clients(const ir::Program& program, std::vector<Client> clients);

// The records of clients first to last - 1 of a pack of several, from the pack's own arrays; a single
// client goes by its name.
Client unpack(const ir::Program& program, const Pack& pack, const Arrays& arrays, std::size_t first,
              std::size_t last);

// Whether it matters to a program which records are whose: it has blocks, private states, values per client or
// results that stay.
bool tells_clients_apart(const ir::Program& program);

// Every client of a pack by itself.
std::vector<Pack> take_apart(const ir::Program& program, Pack pack);
// A pack in parts that threads share, for a program that tells clients apart: a part goes through its blocks one client
// after the other.
std::vector<Pack> in_parts(const ir::Program& program, Pack pack);

// The records that a report counts for a client: those of the bare star, or of the first named one.
std::int64_t reported_records(const ir::Program& program, const Client& client);

}  // namespace starfold
