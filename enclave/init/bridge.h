// A bridge carries connections from one address to another, both ways, until each side has ended its own.
#pragma once

#include <stddef.h>

#include "socket.h"

namespace enclave {

// A bridge sees bytes only, so it judges nobody: the server decides whose connection is over.
struct BridgeLimits {
  // More than the server's own bound of 2048, so that a new connection reaches it even then.
  size_t connections = 2560;
  // One side has ended and nothing has moved since. Over TCP a side that is gone looks like one that still reads,
  // until it is written to: this is longer than the server takes for an answer unless told, which is 30 s.
  long long ended_idle_ms = 40'000;
};

// Serves for as long as the process lives. `listener` comes from listen_on: a bridge may have given up the
// right to open it. Returns, with errno, only when the kernel refuses to go on.
void run_bridge(Fd listener, const Address& target, const BridgeLimits& limits = {});

}  // namespace enclave
