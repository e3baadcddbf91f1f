// A bridge carries connections from one address to another, both ways, until each side has ended its own.
#pragma once

#include <stddef.h>

#include "socket.h"

namespace enclave {

// Which end of a bridge is the server: the peers that connect to it, or its target.
enum class ServerEnd { peer = 0, target = 1 };

// A bridge sees bytes only, so it judges nobody: the server decides whose connection is over.
struct BridgeLimits {
  // More than the server's own bound of 2048, so that a new connection reaches it even then.
  size_t connections = 2560;
  // The server has ended its side and nothing has moved since: as a rule it has closed its socket, which looks
  // like half of it until it is written to. Nobody would read what a silent far end may still send.
  long long ended_idle_ms = 10'000;
};

// Serves for as long as the process lives. `listener` comes from listen_on: a bridge may have given up the
// right to open it. Returns, with errno, only when the kernel refuses to go on.
void run_bridge(Fd listener, const Address& target, ServerEnd server, const BridgeLimits& limits = {});

}  // namespace enclave
