// A bridge forwards connections from one address to another in both directions, until both sides have closed.
#pragma once

#include "connections.h"

namespace enclave {

// A listener, and the connections that it has accepted.
class Bridge final : Watcher {
 public:
  // The target and the limits must outlive the bridge.
  Bridge(Loop& loop, Fd listener, Target& target, const BridgeLimits& limits);

  // Whether the listener listens, and is to be accepted from. By default, yes.
  void set_open(bool is_open) { is_open_ = is_open; }
  // Closes the listener. What it has accepted stays.
  void retire() {
    is_open_ = false;
    watched_ = 0;
    listener_.reset();
  }
  // After each round. Returns false, with errno, if a system call fails for good.
  bool serve();

  const Connections& connections() const { return connections_; }

 private:
  void handle(uint32_t events) override;
  bool watch_listener(bool want);
  bool accept_some();

  Loop& loop_;
  Fd listener_;
  bool is_open_ = true;
  Target& target_;
  Connections connections_;
  uint32_t watched_ = 0;
  bool arrived_ = false;
  long long full_since_ = 0;  // 0 while below the limit
};

// Serves until the process ends. `listener` comes from listen_on: the process may have dropped the privilege to open
// it. Returns, with errno, only if a system call fails for good.
void run_bridge(Fd listener, const Address& target, const BridgeLimits& limits = {});

}  // namespace enclave
