// Keeps the system's clock in step with the hypervisor's, where /dev/ptp0 shows it.
#pragma once

namespace enclave {

// What to do about a difference between the reference and the system's clock.
enum class Correction { none, slew, step };
Correction correction_for(long long difference_ns);

// Corrects the clock once and writes what was found to `path`, for the server and its boot report:
// {"source":"ptp0","difference_ms":N} (as it was before the correction) or {"source":"kernel"}. False where
// there is no reference, and so nothing to keep in step with.
bool steer_clock(const char* path);

// steer_clock again and again, for as long as the process lives.
void run_clock(const char* path);

}  // namespace enclave
