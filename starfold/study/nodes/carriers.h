// What carries messages to nodes: their sockets on this machine, or another program that knows the way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "starfold/federation/remote.h"

namespace starfold {

// Nodes on this machine, by the paths of their sockets. A socket that cannot be reached is no error: the node may come back.
std::unique_ptr<Carrier> socket_carrier(std::vector<std::string> sockets);

// A program that carries: it is started, told `setup` (a JSON text), and then gets requests and gives answers on its standard
// input and output (docs/flower.md). RunError when it cannot be started or says that it cannot carry. It is told to end, and
// waited for, when the carrier is.
std::unique_ptr<Carrier> process_carrier(const std::vector<std::string>& command,
                                         const std::string& setup, double patience,
                                         const std::atomic<bool>* stop);

}  // namespace starfold
