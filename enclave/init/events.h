// Streams the server's events to the parent, whose reader may be slow, absent or gone at any time.
#pragma once

#include "socket.h"

namespace enclave {

// Forwards whole lines from `pipe` over one connection, which is opened again after it broke, until the server has closed
// its end and what waits was sent, or a time-out has passed. Always reads on: while the receiver does not, new lines are
// dropped at a bound, and `{"event":"lost","events":N}` says how many.
void run_events(Fd pipe, const Address& to);

}  // namespace enclave
