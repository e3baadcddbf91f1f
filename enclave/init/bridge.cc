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

constexpr size_t kChunk = 64 * 1024;
// With both buffers of each connection full, these are 64 MiB.
constexpr size_t kMaxConnections = 512;
// A connection on which nothing has moved for so long is forgotten by someone.
constexpr long long kIdleMs = 10 * 60 * 1000;
// The target has ended and the peer was told: an honest one ends as well, another one would keep its place.
constexpr long long kEndedIdleMs = 10 * 1000;
// The peer has ended, or is gone, which looks the same, and the target is silent: three times as long as the
// server takes for an answer unless told.
constexpr long long kWaitingIdleMs = 100 * 1000;
constexpr int kSweepMs = 5 * 1000;

// Bytes on their way from one end to the other. They are kept here only when the receiver is slower.
struct Direction {
  std::vector<char> pending;
  size_t sent = 0;
  bool ended = false;   // the sender has ended
  bool passed = false;  // and the receiver was told so

  bool has_pending() const { return sent < pending.size(); }
};

struct Connection;

struct End {
  Fd fd;
  Connection* connection = nullptr;
  uint32_t watched = 0;
};

// Bytes that `ends[i]` sends travel in `from[i]`.
struct Connection {
  End ends[2];
  Direction from[2];
  bool connecting = true;
  bool dead = false;
  long long last_ms = now_ms();
};

class Bridge {
 public:
  Bridge(Fd listener, const Address& target)
      : listener_(std::move(listener)), target_(target), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  void run() {
    if (!epoll_ || !watch_listener()) return;
    long long swept = now_ms();
    for (;;) {
      epoll_event events[64];
      const int count = epoll_wait(epoll_.get(), events, 64, kSweepMs);
      if (count < 0 && errno != EINTR) return;
      for (int i = 0; i < count; ++i) {
        auto* end = static_cast<End*>(events[i].data.ptr);
        if (end == nullptr) {
          accept_all();
        } else if (!end->connection->dead) {
          handle(*end, events[i].events);
        }
      }
      if (now_ms() - swept >= kSweepMs) {
        swept = now_ms();
        for (auto& [key, connection] : connections_) {
          const long long idle = swept - connection->last_ms;
          if (idle >= (connection->from[0].passed ? kWaitingIdleMs : kIdleMs)) {
            abort(*connection);
          } else if (connection->from[1].passed && idle >= kEndedIdleMs) {
            // Without a reset: the last bytes may still be on their way to a slow peer.
            connection->dead = true;
            close_ends(*connection);
          }
        }
      }
      // Only now: an event of the same round may still point at one.
      if (std::erase_if(connections_, [](const auto& entry) { return entry.second->dead; }) > 0 &&
          !watch_listener()) {
        return;
      }
    }
  }

 private:
  bool watch_listener() {
    const bool want = connections_.size() < kMaxConnections;
    if (want == listening_) return true;
    epoll_event event{};
    event.events = EPOLLIN;
    listening_ = want;
    return epoll_ctl(epoll_.get(), want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.get(), &event) == 0;
  }

  void accept_all() {
    while (connections_.size() < kMaxConnections) {
      Fd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!accepted) {
        // Out of descriptors or memory: the queue stays readable, and this must not become a busy loop.
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) usleep(10'000);
        break;
      }
      auto connection = std::make_unique<Connection>();
      connection->ends[0].fd = std::move(accepted);
      connection->ends[1].fd = connect_to(target_);
      for (End& end : connection->ends) {
        end.connection = connection.get();
        const int yes = 1;
        // Fails on vsock, which has no such delay.
        setsockopt(end.fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      }
      if (connection->ends[1].fd) {
        watch(*connection);
      } else {
        abort(*connection);
      }
      Connection* key = connection.get();
      connections_.emplace(key, std::move(connection));
    }
    watch_listener();
  }

  void handle(End& end, uint32_t events) {
    Connection& connection = *end.connection;
    connection.last_ms = now_ms();
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
      // Towards this end first: it may make room for what comes from the other one.
      if (!flush(connection, 1 - at) || !pump(connection, at)) return abort(connection);
      if (connection.from[0].passed && connection.from[1].passed) {
        connection.dead = true;
        return close_ends(connection);
      }
    }
    watch(connection);
  }

  // Reads once from an end and hands on what it can. False when the connection is broken.
  bool pump(Connection& connection, int at) {
    Direction& direction = connection.from[at];
    if (direction.ended || direction.has_pending()) return true;
    const ssize_t count = recv(connection.ends[at].fd.get(), chunk_, sizeof chunk_, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
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

  // Sends what waits in a direction, and its end after the last byte. False when the connection is broken.
  bool flush(Connection& connection, int at) {
    Direction& direction = connection.from[at];
    const int to = connection.ends[1 - at].fd.get();
    if (direction.has_pending()) {
      const ssize_t sent = send(to, direction.pending.data() + direction.sent,
                                direction.pending.size() - direction.sent, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      direction.sent += static_cast<size_t>(sent);
      if (direction.has_pending()) return true;
      direction.pending = {};
      direction.sent = 0;
    }
    if (direction.ended && !direction.passed) {
      direction.passed = true;
      // The receiver may have gone already: that it got everything is all that can be known.
      shutdown(to, SHUT_WR);
    }
    return true;
  }

  // Watches each end for what can be done with it now, and not at all when there is nothing: a hang-up would
  // be reported without end.
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

  // Ends both sides with a reset, so that none takes a broken stream for a whole one.
  void abort(Connection& connection) {
    const linger now{1, 0};
    for (End& end : connection.ends) {
      if (end.fd) setsockopt(end.fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    connection.dead = true;
    close_ends(connection);
  }

  static void close_ends(Connection& connection) {
    for (End& end : connection.ends) end.fd.reset();
  }

  Fd listener_;
  const Address target_;
  Fd epoll_;
  bool listening_ = false;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  char chunk_[kChunk];
};

}  // namespace

void run_bridge(Fd listener, const Address& target) {
  auto bridge = std::make_unique<Bridge>(std::move(listener), target);
  bridge->run();
}

}  // namespace enclave
