// Sockets of the two kinds that an enclave has: vsock to the parent, TCP on loopback.
#pragma once

#include <string>
#include <utility>

namespace enclave {

// The parent instance, as every enclave sees it.
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

// Where to listen or connect: `vsock:PORT` (any enclave address, or the parent) or `tcp:ADDRESS:PORT`.
struct Address {
  bool vsock = false;
  std::string ip;
  unsigned port = 0;
};

// Returns false when the text is no address.
bool parse_address(const std::string& text, Address& address);

// A listening, non-blocking socket; without one, errno tells why.
Fd listen_on(const Address& address);

// A non-blocking socket whose connection is made or under way; without one, errno tells why.
Fd connect_to(const Address& address);

// For a connection over vsock on which more is to be sent than its buffer holds; TCP needs nothing. The kernel also
// takes this buffer for the most that may be on its way, and a parent whose kernel is older than 6.8 doesn't tell
// that it has read anything before it has read 192 KiB: each would wait for the other for ever.
void widen(int fd);

// Waits for a connection that is under way; false, with errno, when it fails or takes too long.
bool wait_connected(int fd, int timeout_ms);

// Sends or receives the whole of a short message before the time is over.
bool send_all(int fd, const void* data, size_t size, int timeout_ms);
bool receive_all(int fd, void* data, size_t size, int timeout_ms);

// Milliseconds of a clock that nobody sets.
long long now_ms();

}  // namespace enclave
