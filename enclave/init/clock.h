// Synchronises the system clock with the hypervisor's (/dev/ptp0) or, where the hypervisor doesn't show it, the NSM's.
#pragma once

#include "socket.h"

namespace enclave {

// What the system's clock is compared with.
struct Reference {
  const char* name;
  // Below this the reading itself is no better.
  long long ignored_ns;
  unsigned every_seconds;
};
inline constexpr Reference kPtp{"ptp0", 1'000'000, 10};
// Its time may be in whole seconds, and a document costs it tens of milliseconds.
inline constexpr Reference kNsm{"nsm", 1'000'000'000, 180};

// How to correct a difference between the reference and the system clock.
enum class Correction { none, slew, step };
Correction correction_for(const Reference& reference, long long difference_ns);

// The references of this machine, open. Only root may open them; any process may use them.
struct ClockDevices {
  Fd ptp;
  Fd nsm;
};
ClockDevices open_clock_devices();

// Corrects the clock once and writes what was found to `path`, for the server and its boot report:
// {"source":"ptp0"|"nsm","difference_ms":N} (the reference's time minus the system's, before the correction), or
// {"source":"kernel"} where no reference could be read. Returns the seconds after which to do so again.
unsigned steer_clock(const ClockDevices& devices, const char* path);

// Calls steer_clock periodically until the process ends.
[[noreturn]] void run_clock(const ClockDevices& devices, const char* path);

}  // namespace enclave
