// A TCP address of the host that is forwarded to a vsock port of an enclave.
#pragma once

#include "../init/bridge.h"
#include "conf.h"

namespace enclave {

// While the enclave does not answer, nobody listens on it, so that the kernel refuses callers at once.
class Door final : public Target, Watcher {
 public:
  Door(Loop& loop, const ListenLine& line, unsigned cid, const BridgeLimits& limits);
  Door(const Door&) = delete;

  const ListenLine& line() const { return line_; }
  bool is_open() const { return is_open_; }
  // Gives the address up, and keeps the connections. Returns whether there are any.
  bool retire();
  // Null while another program has the address.
  const Bridge* bridge() const { return bridge_.get(); }
  // After each round. Returns false, with errno, if a system call fails for good.
  bool serve();

 private:
  Fd dial(size_t& next) override;
  void dialled(bool reached) override;
  void handle(uint32_t events) override;
  void take_address();
  void probe();
  void set_open(bool is_open);
  void report(const char* what);

  Loop& loop_;
  const ListenLine line_;
  const unsigned cid_;
  const BridgeLimits& limits_;
  std::unique_ptr<Bridge> bridge_;
  int listener_ = -1;  // the bridge's
  bool is_open_ = false;
  bool is_retired_ = false;
  bool is_reported_ = false;
  Fd probe_;  // a connection that only shows whether the enclave answers
  uint32_t probe_watched_ = 0;
  long long probed_ms_ = 0;
};

}  // namespace enclave
