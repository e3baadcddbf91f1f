#include "clock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "socket.h"
#include "system.h"

namespace enclave {

namespace {

constexpr long long kSecond = 1'000'000'000;
// The precision of the reading itself.
constexpr long long kIgnoredNs = 1'000'000;
// The kernel slews half a millisecond per second: a larger difference would take over a quarter of an hour.
constexpr long long kStepNs = kSecond / 2;
constexpr unsigned kEverySeconds = 10;
constexpr int kSamples = 5;

long long nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

timespec to_timespec(long long ns) { return {ns / kSecond, ns % kSecond}; }

// The reference's time minus the system's.
bool read_difference(long long& difference) {
  Fd device(open("/dev/ptp0", O_RDONLY | O_CLOEXEC));
  if (!device) return false;
  // The clock of a descriptor, as clock_getres(2) describes it.
  const auto id = static_cast<clockid_t>((~static_cast<unsigned>(device.get()) << 3) | 3);
  // A pause between the readings would look like a difference, so only the fastest of several samples counts.
  long long narrowest = LLONG_MAX;
  for (int times = 0; times < kSamples; ++times) {
    timespec before;
    timespec reference;
    timespec after;
    clock_gettime(CLOCK_REALTIME, &before);
    if (clock_gettime(id, &reference) != 0) return false;
    clock_gettime(CLOCK_REALTIME, &after);
    const long long took = nanoseconds(after) - nanoseconds(before);
    if (took < 0 || took >= narrowest) continue;
    narrowest = took;
    difference = nanoseconds(reference) - (nanoseconds(before) + nanoseconds(after)) / 2;
  }
  return narrowest != LLONG_MAX;
}

void correct(long long difference) {
  timespec now;
  timeval slew{difference / kSecond, difference % kSecond / 1000};
  switch (correction_for(difference)) {
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

Correction correction_for(long long difference_ns) {
  const long long size = llabs(difference_ns);
  return size >= kStepNs ? Correction::step : size >= kIgnoredNs ? Correction::slew : Correction::none;
}

bool steer_clock(const char* path) {
  long long difference = 0;
  if (!read_difference(difference)) {
    keep_state(path, "{\"source\":\"kernel\"}\n");
    return false;
  }
  keep_state(path, "{\"source\":\"ptp0\",\"difference_ms\":" + std::to_string(difference / 1'000'000) + "}\n");
  correct(difference);
  return true;
}

void run_clock(const char* path) {
  for (;;) {
    sleep(kEverySeconds);
    steer_clock(path);
  }
}

}  // namespace enclave
