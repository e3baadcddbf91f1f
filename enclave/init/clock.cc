#include "clock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "nsm.h"
#include "socket.h"
#include "system.h"

namespace enclave {

namespace {

constexpr long long kSecond = 1'000'000'000;
// The kernel slews half a millisecond per second: a larger difference would take over a quarter of an hour.
constexpr long long kStepNs = kSecond / 2;
constexpr int kSamples = 5;

long long nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

timespec to_timespec(long long ns) { return {ns / kSecond, ns % kSecond}; }

// The reference's time minus the system's.
using Difference = std::optional<long long>;

Difference read_ptp(const Fd& device) {
  if (!device) return {};
  // The clock of a descriptor, as clock_getres(2) describes it.
  const auto id = static_cast<clockid_t>((~static_cast<unsigned>(device.get()) << 3) | 3);
  // A pause between the readings would look like a difference, so only the fastest of several samples counts.
  Difference difference;
  long long narrowest = LLONG_MAX;
  for (int times = 0; times < kSamples; ++times) {
    timespec before;
    timespec reference;
    timespec after;
    clock_gettime(CLOCK_REALTIME, &before);
    if (clock_gettime(id, &reference) != 0) return {};
    clock_gettime(CLOCK_REALTIME, &after);
    const long long took = nanoseconds(after) - nanoseconds(before);
    if (took < 0 || took >= narrowest) continue;
    narrowest = took;
    difference = nanoseconds(reference) - (nanoseconds(before) + nanoseconds(after)) / 2;
  }
  return difference;
}

Difference read_nsm(const Fd& device) {
  if (!device) return {};
  timespec before;
  timespec after;
  clock_gettime(CLOCK_REALTIME, &before);
  const std::optional<long long> ms = ask_nsm_time(device.get());
  if (!ms) return {};
  clock_gettime(CLOCK_REALTIME, &after);
  const long long reference = *ms * 1'000'000;
  // The document was made at some time between, which can be long where others wait for theirs.
  const long long nearest = std::max(nanoseconds(before), std::min(nanoseconds(after), reference));
  return reference - nearest;
}

void correct(const Reference& reference, long long difference) {
  timespec now;
  timeval slew{difference / kSecond, difference % kSecond / 1000};
  switch (correction_for(reference, difference)) {
    case Correction::none:
      break;
    case Correction::slew:
      if (adjtime(&slew, nullptr) != 0) perror("init: adjtime");
      break;
    case Correction::step:
      clock_gettime(CLOCK_REALTIME, &now);
      now = to_timespec(nanoseconds(now) + difference);
      if (clock_settime(CLOCK_REALTIME, &now) != 0) perror("init: clock_settime");
      break;
  }
}

void keep_state(const char* path, const std::string& state) {
  if (!write_state(path, state)) perror("init: the state of the clock");
}

}  // namespace

Correction correction_for(const Reference& reference, long long difference_ns) {
  const long long size = llabs(difference_ns);
  return size < reference.ignored_ns ? Correction::none : size < kStepNs ? Correction::slew : Correction::step;
}

ClockDevices open_clock_devices() {
  return {Fd(open("/dev/ptp0", O_RDONLY | O_CLOEXEC)), Fd(open("/dev/nsm", O_RDWR | O_CLOEXEC))};
}

unsigned steer_clock(const ClockDevices& devices, const char* path) {
  const Reference* reference = &kPtp;
  Difference difference = read_ptp(devices.ptp);
  if (!difference) {
    reference = &kNsm;
    difference = read_nsm(devices.nsm);
  }
  if (!difference) {
    keep_state(path, "{\"source\":\"kernel\"}\n");
  } else {
    keep_state(path, std::string("{\"source\":\"") + reference->name +
                         "\",\"difference_ms\":" + std::to_string(*difference / 1'000'000) + "}\n");
    correct(*reference, *difference);
  }
  return reference->every_seconds;
}

void run_clock(const ClockDevices& devices, const char* path) {
  // Waits first: init has just steered the clock, and after a restart a short delay does no harm.
  for (unsigned wait = kPtp.every_seconds;;) {
    sleep(wait);
    wait = steer_clock(devices, path);
  }
}

}  // namespace enclave
