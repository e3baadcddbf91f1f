#include "hand_off.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace enclave {

namespace {

// The server's limit, including the line break.
constexpr size_t kMaxBytes = 64 * 1024;
#ifndef RECEIVE_MS  // The test build waits for less.
#define RECEIVE_MS 10'000
#define VERDICT_MS 2000
#endif
constexpr int kReceiveMs = RECEIVE_MS;
constexpr int kAnswerMs = 1000;
// How long the server may take to accept a hand-off before the sender is told that it was refused.
constexpr int kVerdictMs = VERDICT_MS;

// Wiped when it is no longer needed.
struct Buffer {
  std::array<char, kMaxBytes + 1> bytes;
  size_t size = 0;
  ~Buffer() { explicit_bzero(bytes.data(), bytes.size()); }
};

// Waits until the reader has closed its end, or for the time-out; returns whether it has.
bool reader_gone(int pipe, int timeout_ms) {
  pollfd waiting{pipe, 0, 0};
  return poll(&waiting, 1, timeout_ms) > 0 && (waiting.revents & (POLLERR | POLLHUP)) != 0;
}

// Reads until the sender closes its side, as one line. Returns false if it is empty, too long or too slow.
bool receive_line(int from, Buffer& buffer) {
  const long long until = now_ms() + kReceiveMs;
  for (;;) {
    const ssize_t count = recv(from, buffer.bytes.data() + buffer.size, kMaxBytes - buffer.size, 0);
    if (count == 0) break;
    if (count > 0) {
      buffer.size += static_cast<size_t>(count);
      if (buffer.size == kMaxBytes) return false;
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    const long long left = until - now_ms();
    pollfd waiting{from, POLLIN, 0};
    if (left <= 0 || (poll(&waiting, 1, static_cast<int>(left)) < 0 && errno != EINTR)) return false;
  }
  // A line break between JSON tokens is white space. Inside a string it is invalid JSON, and so is a tab.
  for (size_t at = 0; at < buffer.size; ++at) {
    if (buffer.bytes[at] == '\n' || buffer.bytes[at] == '\r') buffer.bytes[at] = '\t';
  }
  buffer.bytes[buffer.size] = '\n';
  return buffer.size++ > 0;
}

bool write_all(int pipe, const Buffer& buffer) {
  const long long until = now_ms() + kReceiveMs;
  for (size_t written = 0; written < buffer.size;) {
    const ssize_t count = write(pipe, buffer.bytes.data() + written, buffer.size - written);
    if (count > 0) {
      written += static_cast<size_t>(count);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    const long long left = until - now_ms();
    pollfd waiting{pipe, POLLOUT, 0};
    if (left <= 0 || (poll(&waiting, 1, static_cast<int>(left)) < 0 && errno != EINTR)) return false;
  }
  return true;
}

void answer(int to, std::string_view text) {
  send_all(to, text.data(), text.size(), kAnswerMs);
  shutdown(to, SHUT_WR);
}

}  // namespace

bool run_hand_off(Fd listener, Fd pipe) {
  // The server closes the pipe once it has its secrets, perhaps while another sender is being served.
  signal(SIGPIPE, SIG_IGN);
  fcntl(pipe.get(), F_SETFL, fcntl(pipe.get(), F_GETFL) | O_NONBLOCK);
  for (;;) {
    pollfd waiting[2] = {{listener.get(), POLLIN, 0}, {pipe.get(), 0, 0}};
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) return false;
    if (waiting[1].revents & (POLLERR | POLLHUP)) return true;
    if (!(waiting[0].revents & POLLIN)) continue;
    Fd sender(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!sender) {
      // For example out of memory: the listener stays readable, so pause to avoid a busy loop.
      usleep(10'000);
      continue;
    }
    Buffer buffer;
    if (!receive_line(sender.get(), buffer)) {
      answer(sender.get(), "empty, too long or too slow\n");
      continue;
    }
    // After a partial write, the next hand-off would continue the same line: a line break separates them.
    if (!write_all(pipe.get(), buffer) && !reader_gone(pipe.get(), 0)) {
      [[maybe_unused]] const ssize_t ignored = write(pipe.get(), "\n", 1);
    }
    const bool accepted = reader_gone(pipe.get(), kVerdictMs);
    answer(sender.get(), accepted ? "accepted\n" : "refused\n");
    if (accepted) return true;
  }
}

}  // namespace enclave
