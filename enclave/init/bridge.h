// A bridge forwards connections from one address to another in both directions, until both sides have closed.
#pragma once

#include <stddef.h>

#include "socket.h"

namespace enclave {

// A bridge sees only bytes, so it can't judge connections: the server decides which ones to close.
struct BridgeLimits {
  // More than the server's limit of 2048, so that a new connection reaches the server even at its limit.
  size_t connections = 2560;
  // How long a connection may be idle after one side has closed. Over TCP, a peer that has gone is indistinguishable
  // from one that still reads until data is sent: this is longer than the server's default time-out of 30 s.
  long long ended_idle_ms = 40'000;
};

// Serves until the process ends. `listener` comes from listen_on: the process may have dropped the privilege to open
// it. Returns, with errno, only if a system call fails for good.
void run_bridge(Fd listener, const Address& target, const BridgeLimits& limits = {});

}  // namespace enclave
