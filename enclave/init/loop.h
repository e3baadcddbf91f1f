// Waits for the events of many sockets in one thread.
#pragma once

#include <stdint.h>

#include "socket.h"

namespace enclave {

class Watcher {
 public:
  // Must not destroy a watcher: an event of the same round may still lead to it.
  virtual void handle(uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

class Loop {
 public:
  Loop();
  explicit operator bool() const { return static_cast<bool>(epoll_); }

  // Watches for the events that can be handled now, or not at all if there are none: a hang-up would be reported
  // continuously. `watched` is what this socket was watched for so far. Returns false, with errno, if that fails.
  bool watch(int fd, uint32_t& watched, uint32_t want, Watcher& watcher);

  // Waits for at most this long, and handles what has happened. Returns false, with errno, if it fails for good.
  bool run_round(int timeout_ms);

  // The clock of now_ms(), as it was when the round began.
  long long now() const { return now_; }

 private:
  Fd epoll_;
  long long now_ = now_ms();
};

}  // namespace enclave
