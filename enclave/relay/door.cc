#include "door.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "keepers.h"
#include "log.h"

namespace enclave {

namespace {

constexpr long long kProbeEveryMs = 500;
constexpr long long kProbeMs = 2000;

}  // namespace

Door::Door(Loop& loop, const ListenLine& line, unsigned cid, const BridgeLimits& limits)
    : loop_(loop), line_(line), cid_(cid), limits_(limits) {
  take_address();
  probe();
}

bool Door::retire() {
  is_retired_ = true;
  is_open_ = false;
  probe_.reset();
  if (bridge_) bridge_->retire();
  return bridge_ && bridge_->connections().open() > 0;
}

bool Door::serve() {
  const long long elapsed = loop_.now() - probed_ms_;
  if (is_retired_) return bridge_->serve();
  if (probe_ ? elapsed >= kProbeMs : !is_open_ && elapsed >= kProbeEveryMs) {
    // A probe without an answer counts as one that failed.
    if (probe_) set_open(false);
    if (!bridge_) take_address();
    probe();
  }
  return !bridge_ || bridge_->serve();
}

void Door::take_address() {
  Fd listener = bind_to(line_.address);
  if (!listener) return report("can't take the address");
  listener_ = listener.get();
  bridge_ = std::make_unique<Bridge>(loop_, std::move(listener), *this, limits_);
  bridge_->set_open(false);
}

Fd Door::dial(size_t& next) { return next++ == 0 ? connect_to({true, "", line_.port}, cid_) : Fd(); }

void Door::dialled(bool reached) {
  // Under a flood, the enclave refuses some: a single failure does not show that it is gone.
  if (!reached && !probe_ && !is_retired_) probe();
}

void Door::probe() {
  probed_ms_ = loop_.now();
  probe_watched_ = 0;
  probe_ = connect_to({true, "", line_.port}, cid_);
  if (!probe_) return set_open(false);
  loop_.watch(probe_.get(), probe_watched_, EPOLLOUT, *this);
}

void Door::handle(uint32_t) {
  if (!probe_) return;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(probe_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  reset_socket(probe_);
  set_open(error == 0);
}

void Door::set_open(bool is_open) {
  if (is_open == is_open_ || !bridge_) return;
  // Both leave the address with the socket, and the second resets those who were not accepted yet. Meanwhile, another
  // program may have begun to listen there.
  if (is_open ? !start_listening(listener_) : shutdown(listener_, SHUT_RDWR) != 0) return report("can't listen on");
  is_reported_ = false;
  is_open_ = is_open;
  bridge_->set_open(is_open);
}

// Once, until it works again.
void Door::report(const char* what) {
  if (!is_reported_) log(std::string(what) + ' ' + line_.text() + ": " + strerror(errno));
  is_reported_ = true;
}

}  // namespace enclave
