// Sends lines to the parent's log port, since the console of a production enclave can't be read.
#pragma once

#include <string>

#include "socket.h"

namespace enclave {

// Sends one line. Returns false if nobody receives it in time.
bool send_report(const Address& to, const std::string& line);

// Forwards each line that the server writes to `pipe`, retrying while nobody receives it, until the server has closed
// its end and the last line was tried.
void run_reports(Fd pipe, const Address& to);

}  // namespace enclave
