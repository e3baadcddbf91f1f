// Synchronises the system clock with the hypervisor's, if /dev/ptp0 exists.
#pragma once

namespace enclave {

// How to correct a difference between the reference and the system clock.
enum class Correction { none, slew, step };
Correction correction_for(long long difference_ns);

// Corrects the clock once and writes its state to `path`, for the server and its boot report:
// {"source":"ptp0","difference_ms":N} (the difference before the correction) or {"source":"kernel"}. Returns false if
// there is no reference clock.
bool steer_clock(const char* path);

// Calls steer_clock periodically until the process ends.
void run_clock(const char* path);

}  // namespace enclave
