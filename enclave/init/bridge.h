// A bridge carries connections from one address to another, both ways, until each side has ended its own.
#pragma once

#include "socket.h"

namespace enclave {

// Serves for as long as the process lives. `listener` comes from listen_on: a bridge may have given up the
// right to open it. Returns, with errno, only when the kernel refuses to go on.
void run_bridge(Fd listener, const Address& target);

}  // namespace enclave
