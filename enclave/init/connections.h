// Connections that are forwarded in both directions, until both sides have closed.
#pragma once

#include <stddef.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "loop.h"

namespace enclave {

// A bridge sees only bytes, so it can't judge connections: the server decides which ones to close.
struct BridgeLimits {
  // More than the server's limit of 2048, so that a new connection reaches the server even at its limit.
  size_t connections = 2560;
  // How long a connection may be idle after one side has closed. Over TCP, a peer that has gone is indistinguishable
  // from one that still reads until data is sent: this is longer than the server's default time-out of 30 s.
  long long ended_idle_ms = 40'000;
  // How long one attempt to reach the target may take. By default, as long as the kernel tries.
  long long connect_ms = 10 * 60 * 1000;
};

// Where connections lead.
class Target {
 public:
  // Whether dial() can be called now. If not, connections wait until it can.
  virtual bool is_known() { return true; }
  // A socket that is connected or connecting: the first that can be tried at or after the attempt `next`, counted from
  // 0, which is moved past it. None if there are no more.
  virtual Fd dial(size_t& next) = 0;
  // Told for each connection, once.
  virtual void dialled(bool /*reached*/) {}

 protected:
  ~Target() = default;
};

struct Connection;

// Figures since the start.
struct ConnectionCounts {
  unsigned long long accepted = 0;
  unsigned long long full = 0;    // refused, for lack of room
  unsigned long long failed = 0;  // refused, since their target was not reached
  unsigned long long bytes[2] = {0, 0};  // received from the accepted side, from the target
};

class Connections {
 public:
  // The limits must outlive it, and may change.
  Connections(Loop& loop, const BridgeLimits& limits);
  Connections(const Connections&) = delete;
  // Resets all of them.
  ~Connections();

  // Whether there is room for one more, perhaps in place of one that may be finished.
  bool has_room() const;
  // Only if there is room. The target must outlive the connection.
  void add(Fd accepted, Target& target);
  // At once, with a reset.
  void refuse(Fd accepted);
  // After each round. Dials what waits, ends what was idle for too long, and removes what has ended.
  void tidy();

  size_t open() const { return connections_.size(); }
  const ConnectionCounts& counts() const { return counts_; }

 private:
  friend struct End;

  Connection* find_over() const;
  void dial_waiting();
  void dial(Connection& connection);
  void sweep();
  void handle(Connection& connection, int at, uint32_t events);
  bool pump(Connection& connection, int at);
  bool flush(Connection& connection, int at);
  void watch(Connection& connection);
  void give_up(Connection& connection);
  void abort(Connection& connection);
  void finish(Connection& connection);
  void bury();

  Loop& loop_;
  const BridgeLimits& limits_;
  long long swept_;
  size_t waiting_ = 0;  // no fewer than there are
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> dead_;
  ConnectionCounts counts_;
};

}  // namespace enclave
