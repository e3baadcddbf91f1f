// Lines for whoever listens on the parent's log port: the console of a production enclave can't be read.
#pragma once

#include <string>

#include "socket.h"

namespace enclave {

// Sends one line; false when nobody takes it in time.
bool send_report(const Address& to, const std::string& line);

// Passes on each line that the server writes to `pipe`, trying again while nobody takes it, until the server
// has closed its end and the last line has had its chance.
void run_reports(Fd pipe, const Address& to);

}  // namespace enclave
