#include "events.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <string>

namespace enclave {

namespace {

constexpr int kLastSendMs = 2000;
#ifndef RETRY_MS  // The test build waits for less.
#define RETRY_MS 5000
#endif
constexpr int kReconnectMs = RETRY_MS;
// The server's lines have fixed fields and are shorter than this.
constexpr size_t kMaxEvent = 1024;
constexpr size_t kMaxWaiting = 64 * 1024;

// Whole lines that wait for the receiver.
class Lines {
 public:
  // Adds bytes of the server, of which only lines of printable ASCII count.
  void read(const char* bytes, size_t count) {
    for (size_t at = 0; at < count; ++at) {
      const char byte = bytes[at];
      if (byte == '\n') {
        end_line();
      } else if (byte < ' ' || byte > '~' || line_.size() >= kMaxEvent) {
        spoilt_ = true;
      } else {
        line_ += byte;
      }
    }
  }

  // The bytes to send next: what is left of the first line.
  std::string_view next() {
    if (waiting_.empty()) report_lost();
    return waiting_.empty() ? std::string_view() : std::string_view(waiting_.front()).substr(sent_);
  }

  void sent(size_t count) {
    sent_ += count;
    if (sent_ < waiting_.front().size()) return;
    size_ -= waiting_.front().size();
    waiting_.pop_front();
    sent_ = 0;
  }

  // A new receiver gets the first line from its beginning.
  void start_again() { sent_ = 0; }

 private:
  void end_line() {
    report_lost();
    if (spoilt_ || !add(line_ + '\n')) ++lost_;
    line_.clear();
    spoilt_ = false;
  }

  void report_lost() {
    if (lost_ > 0 && add("{\"event\":\"lost\",\"events\":" + std::to_string(lost_) + "}\n")) lost_ = 0;
  }

  bool add(std::string line) {
    if (size_ + line.size() > kMaxWaiting) return false;
    size_ += line.size();
    waiting_.push_back(std::move(line));
    return true;
  }

  std::deque<std::string> waiting_;
  size_t size_ = 0;
  size_t sent_ = 0;  // of the first line
  std::string line_;
  bool spoilt_ = false;
  unsigned long long lost_ = 0;
};

// A connection to the receiver, opened when there is something to send.
class Receiver {
 public:
  explicit Receiver(const Address& to) : to_(to) {}

  // What to poll for; -1 if there is no connection.
  pollfd watch(bool has_lines) {
    if (has_lines && !fd_ && now_ms() >= retry_ms_) {
      fd_ = connect_to(to_);
      if (!fd_) give_up();
    }
    return {fd_.get(), static_cast<short>(has_lines ? POLLIN | POLLOUT : POLLIN), 0};
  }

  // How long to wait for an event.
  int wait_ms(bool has_lines) const {
    if (!has_lines || fd_) return -1;
    return static_cast<int>(std::max(0LL, retry_ms_ - now_ms()));
  }

  void handle(short events, Lines& lines) {
    if (events == 0) return;
    bool works = (events & (POLLERR | POLLNVAL)) == 0;
    if (works && (events & (POLLIN | POLLHUP))) works = still_listens();
    if (works && (events & POLLOUT)) works = send_some(lines);
    if (works) return;
    give_up();
    lines.start_again();
  }

 private:
  void give_up() {
    fd_.reset();
    retry_ms_ = now_ms() + kReconnectMs;
  }

  // The receiver has nothing to say: its bytes are dropped, and its end is the end of the connection.
  bool still_listens() {
    char ignored[512];
    const ssize_t count = recv(fd_.get(), ignored, sizeof ignored, 0);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  bool send_some(Lines& lines) {
    const std::string_view next = lines.next();
    if (next.empty()) return true;
    const ssize_t count = send(fd_.get(), next.data(), next.size(), MSG_NOSIGNAL);
    if (count >= 0) lines.sent(static_cast<size_t>(count));
    return count >= 0 || errno == EAGAIN || errno == EINTR;
  }

  const Address to_;
  Fd fd_;
  long long retry_ms_ = 0;
};

}  // namespace

void run_events(Fd pipe, const Address& to) {
  Lines lines;
  Receiver receiver(to);
  long long until = 0;  // once the server has closed its end
  for (;;) {
    const bool has_lines = !lines.next().empty();
    if (until != 0 && (!has_lines || now_ms() >= until)) return;
    pollfd waiting[2] = {receiver.watch(has_lines), {pipe.get(), POLLIN, 0}};
    int wait_ms = receiver.wait_ms(has_lines);
    if (until != 0) {
      const int left = static_cast<int>(std::max(0LL, until - now_ms()));
      wait_ms = wait_ms < 0 ? left : std::min(wait_ms, left);
    }
    if (poll(waiting, 2, wait_ms) < 0 && errno != EINTR) return;
    receiver.handle(waiting[0].revents, lines);
    if (waiting[1].revents == 0) continue;
    char bytes[4096];
    const ssize_t count = read(pipe.get(), bytes, sizeof bytes);
    if (count > 0) lines.read(bytes, static_cast<size_t>(count));
    if (count == 0) {
      until = now_ms() + kLastSendMs;
      pipe.reset();
    }
  }
}

}  // namespace enclave
