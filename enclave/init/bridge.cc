#include "bridge.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace enclave {

namespace {

// How long new connections wait at the connection limit: the server may be about to close some.
constexpr long long kFullMs = 1000;
constexpr int kSweepMs = 1000;
// Existing connections are served between accepting new ones.
constexpr int kAcceptsAtOnce = 64;

class OneAddress final : public Target {
 public:
  explicit OneAddress(const Address& address) : address_(address) {}

  Fd dial(size_t& next) override { return next++ == 0 ? connect_to(address_) : Fd(); }

 private:
  const Address address_;
};

}  // namespace

Bridge::Bridge(Loop& loop, Fd listener, Target& target, const BridgeLimits& limits)
    : loop_(loop), listener_(std::move(listener)), target_(target), connections_(loop, limits) {}

bool Bridge::serve() {
  connections_.tidy();
  if (!is_open_) return !listener_ || watch_listener(false);
  // Not polled at the connection limit; afterwards any event may have freed a connection.
  const bool arrived = arrived_ || watched_ == 0;
  arrived_ = false;
  return !arrived || accept_some();
}

void Bridge::handle(uint32_t) { arrived_ = true; }

bool Bridge::watch_listener(bool want) { return loop_.watch(listener_.get(), watched_, want ? uint32_t{EPOLLIN} : 0, *this); }

// At the connection limit, a new connection replaces one that may be finished. If there is none, it waits briefly for
// the server to close one, and is then rejected, which is better than hanging. Returns false, with errno, if a system
// call fails for good.
bool Bridge::accept_some() {
  for (int times = 0; times < kAcceptsAtOnce; ++times) {
    const bool room = connections_.has_room();
    if (room) full_since_ = 0;
    if (!room && full_since_ == 0) full_since_ = loop_.now();
    if (!room && loop_.now() - full_since_ < kFullMs) return watch_listener(false);
    Fd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted) {
      // Out of descriptors or memory: the listener stays readable, so pause to avoid a busy loop.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) usleep(10'000);
      break;
    }
    room ? connections_.add(std::move(accepted), target_) : connections_.refuse(std::move(accepted));
  }
  return watch_listener(true);
}

void run_bridge(Fd listener, const Address& target, const BridgeLimits& limits) {
  Loop loop;
  OneAddress address(target);
  const auto bridge = std::make_unique<Bridge>(loop, std::move(listener), address, limits);
  while (loop && bridge->serve() && loop.run_round(kSweepMs)) {
  }
}

}  // namespace enclave
