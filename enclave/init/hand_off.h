// The hand-off of secrets: from the parent to the server's pipe, until the server has taken one.
#pragma once

#include "socket.h"

namespace enclave {

// Takes one JSON object a connection, bounded in size and time, writes it to `pipe` as one line, and tells the
// sender what became of it. True once the server has closed its end of the pipe: it has what it needs, and
// nobody can hand over anything any more. False, with errno, when the kernel refuses to go on.
bool run_hand_off(Fd listener, Fd pipe);

}  // namespace enclave
