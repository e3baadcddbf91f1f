#include "connections.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

namespace enclave {

namespace {

// 2560 connections with two full buffers each use 80 MiB.
constexpr size_t kChunk = 16 * 1024;
// A connection that is idle for this long has been abandoned by one side.
constexpr long long kIdleMs = 10 * 60 * 1000;
constexpr long long kSweepEveryMs = 1000;

// What was just received, for all connections of the process.
char chunk[kChunk];

}  // namespace

// Bytes in transit from one end to the other, buffered only if the receiver is slower.
struct Direction {
  std::vector<char> pending;
  size_t sent = 0;
  bool ended = false;   // the sender has closed its side
  bool passed = false;  // and this was passed on to the receiver
  long long moved_ms = 0;

  bool has_pending() const { return sent < pending.size(); }
};

enum class State { kWaiting, kConnecting, kOpen, kDead };

struct End final : Watcher {
  Fd fd;
  Connections* connections = nullptr;
  Connection* connection = nullptr;
  uint32_t watched = 0;

  void handle(uint32_t events) override;
};

// `from[i]` buffers the bytes that `ends[i]` sends.
struct Connection {
  End ends[2];
  Direction from[2];
  State state = State::kWaiting;
  Target* target = nullptr;
  size_t next = 0;  // attempt to reach the target
  long long since_ms = 0;  // of the present attempt
};

static bool has_failed(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0;
}

void End::handle(uint32_t events) {
  if (connection->state != State::kDead) connections->handle(*connection, this == connection->ends ? 0 : 1, events);
}

Connections::Connections(Loop& loop, const BridgeLimits& limits) : loop_(loop), limits_(limits), swept_(loop.now()) {}

Connections::~Connections() {
  for (const auto& [key, connection] : connections_) {
    for (End& end : connection->ends) reset_socket(end.fd);
  }
}

bool Connections::has_room() const { return connections_.size() < limits_.connections || find_over() != nullptr; }

// Finds a connection that one side has closed, or that the target may have closed behind bytes that the peer does not
// read: the one whose bytes from the target have been stalled longest. The server closes all others, and its limit is
// lower than the bridge's.
Connection* Connections::find_over() const {
  Connection* oldest = nullptr;
  for (const auto& [key, connection] : connections_) {
    const Direction& back = connection->from[1];
    if (!connection->from[0].ended && !back.ended && !back.has_pending()) continue;
    if (oldest == nullptr || back.moved_ms < oldest->from[1].moved_ms) oldest = key;
  }
  return oldest;
}

void Connections::add(Fd accepted, Target& target) {
  if (connections_.size() >= limits_.connections) {
    if (Connection* const over = find_over()) give_up(*over);
    bury();
  }
  auto connection = std::make_unique<Connection>();
  connection->target = &target;
  connection->since_ms = loop_.now();
  connection->ends[0].fd = std::move(accepted);
  for (End& end : connection->ends) {
    end.connections = this;
    end.connection = connection.get();
  }
  for (Direction& direction : connection->from) direction.moved_ms = loop_.now();
  Connection& added = *connection;
  connections_.emplace(&added, std::move(connection));
  ++counts_.accepted;
  if (target.is_known()) {
    dial(added);
  } else {
    ++waiting_;
  }
}

void Connections::refuse(Fd accepted) {
  ++counts_.full;
  reset_socket(accepted);
}

void Connections::tidy() {
  if (waiting_ > 0) dial_waiting();
  if (loop_.now() - swept_ >= kSweepEveryMs) {
    swept_ = loop_.now();
    sweep();
  }
  bury();
}

void Connections::dial_waiting() {
  waiting_ = 0;
  for (const auto& [key, connection] : connections_) {
    if (connection->state != State::kWaiting) continue;
    if (connection->target->is_known()) {
      dial(*connection);
    } else {
      ++waiting_;
    }
  }
}

// Tries the next address of the target.
void Connections::dial(Connection& connection) {
  End& end = connection.ends[1];
  end.fd.reset();
  end.watched = 0;
  end.fd = connection.target->dial(connection.next);
  if (!end.fd) {
    ++counts_.failed;
    abort(connection);
    return connection.target->dialled(false);
  }
  connection.state = State::kConnecting;
  connection.since_ms = loop_.now();
  watch(connection);
}

void Connections::sweep() {
  for (const auto& [key, connection] : connections_) {
    if (connection->state == State::kDead) continue;
    if (connection->state == State::kConnecting && loop_.now() - connection->since_ms >= limits_.connect_ms) {
      dial(*connection);
      continue;
    }
    const auto& [there, back] = connection->from;
    const long long idle = loop_.now() - std::max(there.moved_ms, back.moved_ms);
    if (idle >= (there.passed || back.passed ? limits_.ended_idle_ms : kIdleMs)) give_up(*connection);
  }
}

void Connections::handle(Connection& connection, int at, uint32_t events) {
  if (connection.state == State::kConnecting) {
    if (at == 1 && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
      if ((events & (EPOLLERR | EPOLLHUP)) && has_failed(connection.ends[1].fd.get())) return dial(connection);
      connection.state = State::kOpen;
      connection.target->dialled(true);
      // What the target is to get is probably there, and not the other way round.
      at = 0;
    } else if (events & EPOLLERR) {
      return abort(connection);
    }
  }
  if (connection.state == State::kOpen) {
    // Send to this end first: this may free buffer space for bytes from the other end.
    if (!flush(connection, 1 - at) || !pump(connection, at)) return abort(connection);
    if (connection.from[0].passed && connection.from[1].passed) return finish(connection);
  }
  watch(connection);
}

// Reads once from an end and forwards what it can. Returns false if the connection is broken.
bool Connections::pump(Connection& connection, int at) {
  Direction& direction = connection.from[at];
  if (direction.ended || direction.has_pending()) return true;
  const ssize_t count = recv(connection.ends[at].fd.get(), chunk, sizeof chunk, 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  direction.moved_ms = loop_.now();
  if (count == 0) {
    direction.ended = true;
    return flush(connection, at);
  }
  counts_.bytes[at] += static_cast<unsigned long long>(count);
  const ssize_t sent = send(connection.ends[1 - at].fd.get(), chunk, static_cast<size_t>(count), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
  direction.pending.assign(chunk + std::max<ssize_t>(sent, 0), chunk + count);
  direction.sent = 0;
  return true;
}

// Sends the buffered bytes of a direction, and closes it after the last byte. Returns false if the connection is
// broken.
bool Connections::flush(Connection& connection, int at) {
  Direction& direction = connection.from[at];
  const int to = connection.ends[1 - at].fd.get();
  if (direction.has_pending()) {
    const ssize_t sent = send(to, direction.pending.data() + direction.sent,
                              direction.pending.size() - direction.sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    direction.sent += static_cast<size_t>(sent);
    direction.moved_ms = loop_.now();
    if (direction.has_pending()) return true;
    // Releases the memory, which `= {}` would not.
    std::vector<char>().swap(direction.pending);
    direction.sent = 0;
  }
  if (direction.ended && !direction.passed) {
    direction.passed = true;
    // The receiver may be gone already, but it has received everything. If this is the second end, both are closed next.
    if (!connection.from[1 - at].passed) shutdown(to, SHUT_WR);
  }
  return true;
}

void Connections::watch(Connection& connection) {
  for (int at = 0; at < 2; ++at) {
    End& end = connection.ends[at];
    uint32_t want = 0;
    if (connection.state == State::kConnecting) {
      if (at == 1) want = EPOLLOUT;
    } else {
      if (!connection.from[at].ended && !connection.from[at].has_pending()) want |= EPOLLIN;
      if (connection.from[1 - at].has_pending()) want |= EPOLLOUT;
    }
    if (!loop_.watch(end.fd.get(), end.watched, want, end)) return abort(connection);
  }
}

// Closes cleanly if the peer has received everything that the target sent, otherwise with a reset.
void Connections::give_up(Connection& connection) {
  connection.from[1].passed ? finish(connection) : abort(connection);
}

void Connections::abort(Connection& connection) {
  for (End& end : connection.ends) reset_socket(end.fd);
  connection.state = State::kDead;
  dead_.push_back(&connection);
}

// Without a reset: the last bytes may still be in transit to a slow reader.
void Connections::finish(Connection& connection) {
  for (End& end : connection.ends) end.fd.reset();
  connection.state = State::kDead;
  dead_.push_back(&connection);
}

void Connections::bury() {
  for (Connection* connection : dead_) connections_.erase(connection);
  dead_.clear();
}

}  // namespace enclave
