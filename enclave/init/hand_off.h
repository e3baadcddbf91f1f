// The hand-off of secrets: from the parent to the server's pipe, until the server has accepted one.
#pragma once

#include "socket.h"

namespace enclave {

// Receives one JSON object per connection, with limits on size and time, writes it to `pipe` as one line, and reports
// the result to the sender. Returns true once the server has closed its end of the pipe: it has its secrets, and no
// further hand-off is possible. Returns false, with errno, if a system call fails for good.
bool run_hand_off(Fd listener, Fd pipe);

}  // namespace enclave
