#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include <charconv>

namespace enclave {

namespace {

// The kernel's maximum by default. A shorter queue would drop simultaneous connections.
constexpr int kBacklog = 1024;

union SocketAddress {
  sockaddr any;
  sockaddr_vm vm;
  sockaddr_in in;
};

socklen_t fill(const Address& address, unsigned cid, SocketAddress& out) {
  out = {};
  if (address.vsock) {
    out.vm.svm_family = AF_VSOCK;
    out.vm.svm_cid = cid;
    out.vm.svm_port = address.port;
    return sizeof out.vm;
  }
  out.in.sin_family = AF_INET;
  out.in.sin_port = htons(static_cast<uint16_t>(address.port));
  inet_pton(AF_INET, address.ip.c_str(), &out.in.sin_addr);
  return sizeof out.in;
}

// The connections of a listener have what is set for it. A vsock doesn't delay.
void send_at_once(const Fd& fd, const Address& address) {
  const int yes = 1;
  if (fd && !address.vsock) setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// With the kernel's own buffers: it limits what a vsock sends to the size of the socket's own buffer, too, and the
// parent announces room only when more than a small one has been read, so the two would wait for each other.
Fd open_socket(const Address& address) {
  return Fd(socket(address.vsock ? AF_VSOCK : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool wait_for(int fd, short events, long long until) {
  for (;;) {
    const long long left = until - now_ms();
    pollfd waiting{fd, events, 0};
    const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
    if (ready > 0) return true;
    if (ready == 0) errno = ETIMEDOUT;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool parse_address(const std::string& text, Address& address) {
  address.vsock = text.starts_with("vsock:");
  if (!address.vsock && !text.starts_with("tcp:")) return false;
  const size_t first = text.find(':') + 1;
  const size_t last = text.rfind(':') + 1;
  address.ip = address.vsock || last == first ? "" : text.substr(first, last - 1 - first);
  in_addr parsed;
  if (address.vsock ? last != first : inet_pton(AF_INET, address.ip.c_str(), &parsed) != 1) return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + last, end, address.port);
  return error == std::errc() && stop == end && address.port >= 1 && address.port <= 65535;
}

Fd bind_to(const Address& address) {
  Fd fd = open_socket(address);
  SocketAddress bound;
  const socklen_t size = fill(address, VMADDR_CID_ANY, bound);
  const int yes = 1;
  if (fd && !address.vsock) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  send_at_once(fd, address);
  if (fd && bind(fd.get(), &bound.any, size) == 0) return fd;
  return Fd();
}

bool start_listening(int fd) { return listen(fd, kBacklog) == 0; }

Fd listen_on(const Address& address) {
  Fd fd = bind_to(address);
  if (fd && start_listening(fd.get())) return fd;
  return Fd();
}

Fd connect_to(const Address& address, unsigned cid) {
  Fd fd = open_socket(address);
  SocketAddress peer;
  const socklen_t size = fill(address, cid, peer);
  send_at_once(fd, address);
  if (fd && (connect(fd.get(), &peer.any, size) == 0 || errno == EINPROGRESS)) return fd;
  return Fd();
}

void reset_socket(Fd& fd) {
  const linger now{1, 0};
  if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd.reset();
}

bool wait_connected(int fd, int timeout_ms) {
  if (!wait_for(fd, POLLOUT, now_ms() + timeout_ms)) return false;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

bool send_all(int fd, const void* data, size_t size, int timeout_ms) {
  const long long until = now_ms() + timeout_ms;
  for (size_t sent = 0; sent < size;) {
    const ssize_t count = send(fd, static_cast<const char*>(data) + sent, size - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLOUT, until)) {
      return false;
    }
  }
  return true;
}

bool receive_all(int fd, void* data, size_t size, int timeout_ms) {
  const long long until = now_ms() + timeout_ms;
  for (size_t received = 0; received < size;) {
    const ssize_t count = recv(fd, static_cast<char*>(data) + received, size - received, 0);
    if (count > 0) {
      received += static_cast<size_t>(count);
    } else if (count == 0) {
      errno = ENODATA;
      return false;
    } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLIN, until)) {
      return false;
    }
  }
  return true;
}

long long now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

}  // namespace enclave
