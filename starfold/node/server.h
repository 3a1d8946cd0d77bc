// A desk behind a Unix socket: one loop, one request at a time, until it is told to stop.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "starfold/node/desk/desk.h"

namespace starfold {

struct ServerSignals {
  const std::atomic<bool>* stop = nullptr;  // ends after the request in progress
  std::atomic<bool>* reload = nullptr;  // reads the node's file again; set back when it has been
  std::function<void()> listening;      // called once, when requests can come
  std::function<void(const std::string&)> say;  // what the owner should see: one sentence each
};

// Serves until `stop`. The socket is made for its owner alone, or also for the group that the node's file names, and whoever
// connects is asked who he is. RunError when the socket cannot be made; it is removed at the end.
void serve(Desk& desk, const ServerSignals& signals);

}  // namespace starfold
