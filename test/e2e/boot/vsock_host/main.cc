// The parent's side of an enclave's vsock, as a vhost-user backend for QEMU, without the vsock of this machine:
//
//   vsock_host FOLDER GUEST_CID [RECORD]
//
// QEMU connects to FOLDER/vhost.sock. If the guest connects to port N of CID 3, the program connects it to the unix
// socket FOLDER/N.sock. A caller who wants to reach port N of the guest connects to FOLDER/guest.sock and sends the line
// `N`. The following bytes go to the guest; if the guest refuses the connection, the program closes it. The program ends
// when QEMU does. It writes all packets, of every port and in both directions, to the file RECORD, each with its header.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"

namespace {

constexpr uint64_t kParentCid = 3;
constexpr uint16_t kStream = 1;
enum Op : uint16_t { kRequest = 1, kResponse, kReset, kShutdown, kData, kCreditUpdate, kCreditRequest };
constexpr uint32_t kNoReceive = 1;
constexpr uint32_t kNoSend = 2;

constexpr uint32_t kBuffer = 256 * 1024;
constexpr size_t kChunk = 64 * 1024;
// The guest gets a credit update when it knows of less room than this. Linux before 6.8 sends its updates as late.
constexpr uint32_t kUntold = 64 * 1024;

using Key = std::pair<uint32_t, uint32_t>;  // the guest's port and the parent's port

struct Connection {
  Key key;
  int fd = -1;
  bool open = false;           // the guest has accepted or requested it
  std::vector<char> pending;   // bytes from the guest, for fd
  size_t sent = 0;             // bytes of `pending` that fd has taken
  uint32_t peer_alloc = 0;     // size of the guest's buffer
  uint32_t peer_taken = 0;     // bytes that the guest has taken
  uint32_t given = 0;          // bytes that the guest was sent
  uint32_t taken = 0;          // bytes from the guest that fd has taken
  uint32_t told = 0;           // value of `taken` that the guest knows
  uint32_t shut = 0;           // flags of the guest's shutdowns
  bool ended = false;          // fd has reached its end
  bool dead = false;

  uint32_t credit() const { return peer_alloc - (given - peer_taken); }
  bool has_pending() const { return sent < pending.size(); }
};

class Host {
 public:
  Host(std::string folder, uint64_t cid, int record) : folder_(std::move(folder)), cid_(cid), device_(accept_frontend(), cid, record) {
    guests_ = listen_at("guest.sock");
  }

  void run() {
    for (;;) {
      std::vector<pollfd> waiting{{device_.frontend(), POLLIN, 0}, {guests_, POLLIN, 0}, {device_.transmit_kick(), POLLIN, 0}, {device_.receive_kick(), POLLIN, 0}};
      const bool has_room = device_.room() > 0;
      std::vector<Connection*> order;
      for (auto& [key, connection] : connections_) {
        short events = 0;
        if (connection->open && !connection->ended && has_room && connection->credit() > 0) events |= POLLIN;
        if (connection->has_pending()) events |= POLLOUT;
        if (events == 0) continue;
        waiting.push_back({connection->fd, events, 0});
        order.push_back(connection.get());
      }
      for (const auto& [fd, line] : callers_) waiting.push_back({fd, POLLIN, 0});
      if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return perror("vsock_host: poll");
      if (waiting[0].revents != 0 && !device_.serve_frontend()) return;
      if (waiting[1].revents != 0) take_caller();
      uint64_t ignored;
      for (const int kick : {2, 3}) {
        if (waiting[kick].revents & POLLIN) [[maybe_unused]] auto count = read(waiting[kick].fd, &ignored, sizeof ignored);
      }
      size_t index = 4;
      for (Connection* connection : order) serve(*connection, waiting[index++].revents);
      for (; index < waiting.size(); ++index) {
        if (waiting[index].revents != 0) read_port(waiting[index].fd);
      }
      take_packets();
      flush_control();
      std::erase_if(connections_, [](const auto& entry) { return entry.second->dead; });
    }
  }

 private:
  sockaddr_un address_of(const std::string& name) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/" + name;
    if (path.size() >= sizeof address.sun_path) {
      fprintf(stderr, "vsock_host: the folder's name is too long\n");
      exit(1);
    }
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
  }

  int listen_at(const std::string& name) const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(name);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(fd, 1024) != 0) {
      perror("vsock_host: listen");
      exit(1);
    }
    return fd;
  }

  int accept_frontend() const {
    const int listener = listen_at("vhost.sock");
    puts("ready");
    fflush(stdout);
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    close(listener);
    return fd;
  }

  void take_caller() {
    const int fd = accept4(guests_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) callers_[fd] = "";
  }

  // Reads the line that names a port, byte by byte, since the bytes behind it are for the guest.
  void read_port(int fd) {
    std::string& line = callers_[fd];
    for (char byte;;) {
      const ssize_t count = recv(fd, &byte, 1, 0);
      if (count < 0 && errno == EAGAIN) return;
      if (count == 1 && byte >= '0' && byte <= '9' && line.size() < 6) {
        line += byte;
        continue;
      }
      if (count == 1 && byte == '\n' && !line.empty()) {
        const Key key{static_cast<uint32_t>(atoi(line.c_str())), next_port_++};
        add(key, fd);
        control(key, kRequest);
      } else {
        close(fd);
      }
      callers_.erase(fd);
      return;
    }
  }

  Connection& add(const Key& key, int fd) {
    auto& connection = connections_[key] = std::make_unique<Connection>();
    connection->key = key;
    connection->fd = fd;
    return *connection;
  }

  void serve(Connection& connection, short events) {
    if (events & (POLLOUT | POLLERR | POLLHUP)) flush(connection);
    if (!connection.dead && (events & (POLLIN | POLLERR | POLLHUP))) pump(connection);
  }

  // Forwards from fd to the guest, as far as its buffers and credit allow.
  void pump(Connection& connection) {
    if (!connection.open || connection.ended) return;
    const ssize_t room = device_.room();
    const size_t size = std::min({static_cast<size_t>(std::max<ssize_t>(room, 0)), static_cast<size_t>(connection.credit()), kChunk});
    // Control packets first: the guest must not see data before the answer to its request.
    if (size == 0 || !control_.empty()) return;
    char data[kChunk];
    const ssize_t count = recv(connection.fd, data, size, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) return drop(connection);
    if (count == 0) {
      connection.ended = true;
      control(connection.key, kShutdown, kNoSend);
      return finish(connection);
    }
    Header header = header_for(connection.key, kData, 0);
    header.length = static_cast<uint32_t>(count);
    connection.given += header.length;
    connection.told = connection.taken;
    device_.give(header, data);
  }

  // Writes what the guest has sent to fd, and shuts fd down after the last byte.
  void flush(Connection& connection) {
    while (connection.has_pending()) {
      const ssize_t count = send(connection.fd, connection.pending.data() + connection.sent, connection.pending.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (count < 0) return drop(connection);
      connection.sent += static_cast<size_t>(count);
      connection.taken += static_cast<uint32_t>(count);
    }
    if (!connection.has_pending()) {
      connection.pending.clear();
      connection.sent = 0;
      if (connection.shut & kNoSend) shutdown(connection.fd, SHUT_WR);
    }
    if (connection.taken - connection.told > kBuffer - kUntold) control(connection.key, kCreditUpdate);
    finish(connection);
  }

  // Answers with a reset if the guest has closed its socket and all its bytes were forwarded.
  void finish(Connection& connection) {
    if (connection.shut == (kNoReceive | kNoSend) && !connection.has_pending()) drop(connection);
  }

  void drop(Connection& connection) {
    if (connection.dead) return;
    connection.dead = true;
    close(connection.fd);
    control(connection.key, kReset);
  }

  void take_packets() {
    Header header;
    std::vector<char> data;
    while (device_.take(header, data)) take_packet(header, data);
  }

  void take_packet(const Header& header, const std::vector<char>& data) {
    const Key key{header.src_port, header.dst_port};
    const auto entry = connections_.find(key);
    Connection* connection = entry == connections_.end() || entry->second->dead ? nullptr : entry->second.get();
    if (header.dst_cid != kParentCid || header.src_cid != cid_ || header.type != kStream) return control(key, kReset);
    if (connection == nullptr) {
      if (header.op == kRequest) return take_request(key, header);
      if (header.op != kReset) control(key, kReset);
      return;
    }
    connection->peer_alloc = header.buf_alloc;
    connection->peer_taken = header.fwd_cnt;
    switch (header.op) {
      case kResponse:
        connection->open = true;
        break;
      case kReset:
        connection->dead = true;
        close(connection->fd);
        break;
      case kData:
        if (connection->pending.size() - connection->sent + data.size() > kBuffer) return drop(*connection);
        connection->pending.insert(connection->pending.end(), data.begin(), data.end());
        flush(*connection);
        break;
      case kShutdown:
        connection->shut |= header.flags;
        flush(*connection);
        break;
      case kCreditRequest:
        control(key, kCreditUpdate);
        break;
      case kCreditUpdate:
        break;
      default:
        drop(*connection);
    }
  }

  void take_request(const Key& key, const Header& header) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(std::to_string(key.second) + ".sock");
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(fd);
      return control(key, kReset);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    // A dead connection of the same ports remains until the end of this round.
    connections_.erase(key);
    Connection& connection = add(key, fd);
    connection.open = true;
    connection.peer_alloc = header.buf_alloc;
    connection.peer_taken = header.fwd_cnt;
    control(key, kResponse);
  }

  Header header_for(const Key& key, uint16_t op, uint32_t flags) const {
    const auto entry = connections_.find(key);
    const uint32_t taken = entry == connections_.end() ? 0 : entry->second->taken;
    return {kParentCid, cid_, key.second, key.first, 0, kStream, op, flags, kBuffer, taken};
  }

  void control(const Key& key, uint16_t op, uint32_t flags = 0) {
    const auto entry = connections_.find(key);
    if (entry != connections_.end()) entry->second->told = entry->second->taken;
    control_.push_back(header_for(key, op, flags));
    flush_control();
  }

  void flush_control() {
    for (; !control_.empty() && device_.room() >= 0; control_.pop_front()) device_.give(control_.front(), nullptr);
  }

  const std::string folder_;
  const uint64_t cid_;
  Device device_;
  int guests_ = -1;
  uint32_t next_port_ = 1024;
  std::map<Key, std::unique_ptr<Connection>> connections_;
  std::map<int, std::string> callers_;  // incomplete lines of callers
  std::deque<Header> control_;
};

}  // namespace

int main(int argc, char** argv) {
  const long cid = argc == 3 || argc == 4 ? atol(argv[2]) : 0;
  if (cid <= static_cast<long>(kParentCid)) {
    fprintf(stderr, "usage: vsock_host FOLDER GUEST_CID (4 or more) [RECORD]\n");
    return 2;
  }
  const int record = argc == 4 ? open(argv[3], O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (argc == 4 && record < 0) {
    perror("vsock_host: the record");
    return 1;
  }
  signal(SIGPIPE, SIG_IGN);
  Host(argv[1], static_cast<uint64_t>(cid), record).run();
}
