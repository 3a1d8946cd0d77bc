// Many small clients whose records lie in common arrays. Every plan gives the same answer for any cut of
// the records (thm:shared-state-factorization), so a simulation need not keep its clients apart.
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
};

// Puts small clients together when there are many; each other client gets a pack of its own. Clients
// whose arrays do not fit each other stay apart, so that whoever runs them can say who is wrong.
std::vector<Pack> pack_clients(const ir::Program& program, std::vector<Client> clients);

// The records that a report counts for a client: those of the bare star, or of the first named one.
std::int64_t reported_records(const ir::Program& program, const Client& client);

}  // namespace starfold
