// The two kinds of sockets in an enclave: vsock to the parent, TCP on loopback.
#pragma once

#include <string>
#include <utility>

namespace enclave {

// The CID of the parent instance, the same for every enclave.
inline constexpr unsigned kParentCid = 3;

// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

// An address to listen on or connect to: `vsock:PORT` (any enclave address, or the parent) or `tcp:ADDRESS:PORT`.
struct Address {
  bool vsock = false;
  std::string ip;
  unsigned port = 0;
};

// Returns false if the string is not an address.
bool parse_address(const std::string& text, Address& address);

// Returns a non-blocking socket that has the address, or none with errno. Nobody can connect to it yet.
Fd bind_to(const Address& address);

// Returns false, with errno, if that fails.
bool start_listening(int fd);

// Returns a listening, non-blocking socket, or none with errno.
Fd listen_on(const Address& address);

// Returns a non-blocking socket that is connected or connecting, or none with errno. `cid` is that of a vsock address.
Fd connect_to(const Address& address, unsigned cid = kParentCid);

// Closes with a reset, so that the peer doesn't mistake a broken stream for a complete one.
void reset_socket(Fd& fd);

// Waits for a pending connection. Returns false, with errno, if it fails or times out.
bool wait_connected(int fd, int timeout_ms);

// Sends or receives a complete short message before the time-out. If the peer ends first, errno is ENODATA.
bool send_all(int fd, const void* data, size_t size, int timeout_ms);
bool receive_all(int fd, void* data, size_t size, int timeout_ms);

// Milliseconds of a monotonic clock.
long long now_ms();

}  // namespace enclave
