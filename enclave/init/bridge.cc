#include "bridge.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

namespace enclave {

namespace {

// 2560 connections with two full buffers each use 80 MiB.
constexpr size_t kChunk = 16 * 1024;
// A connection that is idle for this long has been abandoned by one side.
constexpr long long kIdleMs = 10 * 60 * 1000;
// How long new connections wait at the connection limit: the server may be about to close some.
constexpr long long kFullMs = 1000;
constexpr int kSweepMs = 1000;
// Existing connections are served between accepting new ones.
constexpr int kAcceptsAtOnce = 64;

// Bytes in transit from one end to the other, buffered only if the receiver is slower.
struct Direction {
  std::vector<char> pending;
  size_t sent = 0;
  bool ended = false;   // the sender has closed its side
  bool passed = false;  // and this was passed on to the receiver
  long long moved_ms = now_ms();

  bool has_pending() const { return sent < pending.size(); }
};

struct Connection;

struct End {
  Fd fd;
  Connection* connection = nullptr;
  uint32_t watched = 0;
};

// `from[i]` buffers the bytes that `ends[i]` sends.
struct Connection {
  End ends[2];
  Direction from[2];
  bool connecting = true;
  bool dead = false;
};

// Closes with a reset, so that the peer doesn't mistake a broken stream for a complete one.
void reset(Fd& fd) {
  const linger now{1, 0};
  if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd.reset();
}

class Bridge {
 public:
  Bridge(Fd listener, const Address& target, const BridgeLimits& limits)
      : listener_(std::move(listener)), target_(target), limits_(limits), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  void run() {
    if (!epoll_ || !watch_listener(true)) return;
    long long swept = now_;
    for (;;) {
      epoll_event events[64];
      const int count = epoll_wait(epoll_.get(), events, 64, kSweepMs);
      if (count < 0 && errno != EINTR) return;
      now_ = now_ms();
      // Not polled at the connection limit; afterwards any event may have freed a connection.
      bool arrived = !listening_;
      for (int i = 0; i < count; ++i) {
        auto* end = static_cast<End*>(events[i].data.ptr);
        if (end == nullptr) {
          arrived = true;
        } else if (!end->connection->dead) {
          handle(*end, events[i].events);
        }
      }
      if (now_ - swept >= kSweepMs) {
        swept = now_;
        sweep();
      }
      // Only now: an event of the same round may still point to one.
      bury();
      if (arrived && !accept_some()) return;
    }
  }

 private:
  bool watch_listener(bool want) {
    if (want == listening_) return true;
    epoll_event event{};
    event.events = EPOLLIN;
    listening_ = want;
    return epoll_ctl(epoll_.get(), want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.get(), &event) == 0;
  }

  // At the connection limit, a new connection replaces one that may be finished. If there is none, it waits briefly for
  // the server to close one, and is then rejected, which is better than hanging. Returns false, with errno, if a system
  // call fails for good.
  bool accept_some() {
    for (int times = 0; times < kAcceptsAtOnce; ++times) {
      const bool full = connections_.size() >= limits_.connections;
      Connection* const over = full ? find_over() : nullptr;
      const bool room = !full || over != nullptr;
      if (room) full_since_ = 0;
      if (!room && full_since_ == 0) full_since_ = now_;
      if (!room && now_ - full_since_ < kFullMs) return watch_listener(false);
      Fd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!accepted) {
        // Out of descriptors or memory: the listener stays readable, so pause to avoid a busy loop.
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) usleep(10'000);
        break;
      }
      if (over != nullptr) {
        give_up(*over);
        bury();
      }
      if (room) {
        open(std::move(accepted));
      } else {
        reset(accepted);
      }
    }
    return watch_listener(true);
  }

  // Finds a connection that one side has closed, or that the target may have closed behind bytes that the peer does not
  // read: the one whose bytes from the target have been stalled longest. The server closes all others, and its limit is
  // lower than the bridge's.
  Connection* find_over() const {
    Connection* oldest = nullptr;
    for (const auto& [key, connection] : connections_) {
      const Direction& back = connection->from[1];
      if (!connection->from[0].ended && !back.ended && !back.has_pending()) continue;
      if (oldest == nullptr || back.moved_ms < oldest->from[1].moved_ms) oldest = key;
    }
    return oldest;
  }

  void open(Fd accepted) {
    auto connection = std::make_unique<Connection>();
    connection->ends[0].fd = std::move(accepted);
    connection->ends[1].fd = connect_to(target_);
    for (End& end : connection->ends) {
      end.connection = connection.get();
      const int yes = 1;
      // Fails on vsock, which doesn't delay.
      setsockopt(end.fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    Connection& opened = *connection;
    connections_.emplace(&opened, std::move(connection));
    opened.ends[1].fd ? watch(opened) : abort(opened);
  }

  void sweep() {
    for (const auto& [key, connection] : connections_) {
      const auto& [there, back] = connection->from;
      const long long idle = now_ - std::max(there.moved_ms, back.moved_ms);
      if (idle >= (there.passed || back.passed ? limits_.ended_idle_ms : kIdleMs)) give_up(*connection);
    }
  }

  void handle(End& end, uint32_t events) {
    Connection& connection = *end.connection;
    if (connection.connecting) {
      if (&end == &connection.ends[1] && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(end.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) return abort(connection);
        connection.connecting = false;
      } else if (events & EPOLLERR) {
        return abort(connection);
      }
    }
    if (!connection.connecting) {
      const int at = &end == &connection.ends[0] ? 0 : 1;
      // Send to this end first: this may free buffer space for bytes from the other end.
      if (!flush(connection, 1 - at) || !pump(connection, at)) return abort(connection);
      if (connection.from[0].passed && connection.from[1].passed) return finish(connection);
    }
    watch(connection);
  }

  // Reads once from an end and forwards what it can. Returns false if the connection is broken.
  bool pump(Connection& connection, int at) {
    Direction& direction = connection.from[at];
    if (direction.ended || direction.has_pending()) return true;
    const ssize_t count = recv(connection.ends[at].fd.get(), chunk_, sizeof chunk_, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    direction.moved_ms = now_;
    if (count == 0) {
      direction.ended = true;
      return flush(connection, at);
    }
    const ssize_t sent = send(connection.ends[1 - at].fd.get(), chunk_, static_cast<size_t>(count), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    direction.pending.assign(chunk_ + std::max<ssize_t>(sent, 0), chunk_ + count);
    direction.sent = 0;
    return true;
  }

  // Sends the buffered bytes of a direction, and closes it after the last byte. Returns false if the connection is
  // broken.
  bool flush(Connection& connection, int at) {
    Direction& direction = connection.from[at];
    const int to = connection.ends[1 - at].fd.get();
    if (direction.has_pending()) {
      const ssize_t sent = send(to, direction.pending.data() + direction.sent,
                                direction.pending.size() - direction.sent, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      direction.sent += static_cast<size_t>(sent);
      direction.moved_ms = now_;
      if (direction.has_pending()) return true;
      // Releases the memory, which `= {}` would not.
      std::vector<char>().swap(direction.pending);
      direction.sent = 0;
    }
    if (direction.ended && !direction.passed) {
      direction.passed = true;
      // The receiver may be gone already, but it has received everything.
      shutdown(to, SHUT_WR);
    }
    return true;
  }

  // Polls each end for the events that it can handle now, or not at all if there are none: a hang-up would be reported
  // continuously.
  void watch(Connection& connection) {
    for (int at = 0; at < 2; ++at) {
      End& end = connection.ends[at];
      uint32_t want = 0;
      if (connection.connecting) {
        if (at == 1) want = EPOLLOUT;
      } else {
        if (!connection.from[at].ended && !connection.from[at].has_pending()) want |= EPOLLIN;
        if (connection.from[1 - at].has_pending()) want |= EPOLLOUT;
      }
      if (want == end.watched) continue;
      epoll_event event{};
      event.events = want;
      event.data.ptr = &end;
      const int change = end.watched == 0 ? EPOLL_CTL_ADD : want == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
      end.watched = want;
      if (epoll_ctl(epoll_.get(), change, end.fd.get(), &event) != 0) return abort(connection);
    }
  }

  // Closes cleanly if the peer has received everything that the target sent, otherwise with a reset.
  void give_up(Connection& connection) { connection.from[1].passed ? finish(connection) : abort(connection); }

  void abort(Connection& connection) {
    for (End& end : connection.ends) reset(end.fd);
    drop(connection);
  }

  // Without a reset: the last bytes may still be in transit to a slow reader.
  void finish(Connection& connection) {
    for (End& end : connection.ends) end.fd.reset();
    drop(connection);
  }

  void drop(Connection& connection) {
    connection.dead = true;
    dead_.push_back(&connection);
  }

  void bury() {
    for (Connection* connection : dead_) connections_.erase(connection);
    dead_.clear();
  }

  Fd listener_;
  const Address target_;
  const BridgeLimits limits_;
  Fd epoll_;
  bool listening_ = false;
  long long now_ = now_ms();
  long long full_since_ = 0;  // 0 while below the limit
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> dead_;
  char chunk_[kChunk];
};

}  // namespace

void run_bridge(Fd listener, const Address& target, const BridgeLimits& limits) {
  auto bridge = std::make_unique<Bridge>(std::move(listener), target, limits);
  bridge->run();
}

}  // namespace enclave
