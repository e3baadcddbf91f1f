#include "report.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <string>

namespace enclave {

namespace {

constexpr int kSendMs = 2000;
#ifndef RETRY_MS  // The test build waits for less.
#define RETRY_MS 5000
#endif
constexpr int kRetryMs = RETRY_MS;
// The server's lines have fixed fields and are far shorter than this.
constexpr size_t kMaxLine = 4096;
// While nobody listens, only the newest lines are kept.
constexpr size_t kMaxUnsent = 8;

}  // namespace

bool send_report(const Address& to, const std::string& line) {
  const Fd fd = connect_to(to);
  if (!fd || !wait_connected(fd.get(), kSendMs) || !send_all(fd.get(), line.data(), line.size(), kSendMs)) return false;
  shutdown(fd.get(), SHUT_WR);
  // Wait until the receiver closes, which confirms the line: closing first could reset the connection and lose it. A
  // reset from the receiver refuses the line.
  char ignored;
  return !receive_all(fd.get(), &ignored, 1, kSendMs) && errno == ENODATA;
}

void run_reports(Fd pipe, const Address& to) {
  std::deque<std::string> unsent;
  std::string line;
  const auto send_all_of_them = [&unsent, &to] {
    while (!unsent.empty() && send_report(to, unsent.front())) unsent.pop_front();
  };
  for (;;) {
    pollfd waiting{pipe.get(), POLLIN, 0};
    if (poll(&waiting, 1, unsent.empty() ? -1 : kRetryMs) < 0 && errno != EINTR) return;
    if (waiting.revents != 0) {
      char bytes[512];
      const ssize_t count = read(pipe.get(), bytes, sizeof bytes);
      if (count == 0) return send_all_of_them();
      for (ssize_t at = 0; at < count; ++at) {
        if (line.size() < kMaxLine) line += bytes[at];
        if (bytes[at] != '\n') continue;
        // A truncated line is dropped completely.
        if (line.back() == '\n') unsent.push_back(line);
        if (unsent.size() > kMaxUnsent) unsent.pop_front();
        line.clear();
      }
    }
    send_all_of_them();
  }
}

}  // namespace enclave
