#include "inbox.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

namespace enclave {

namespace {

// Init sends a line at once. A sender of a single line must not occupy a place for longer.
constexpr long long kSingleMs = 5000;
constexpr size_t kReadSize = 4096;

// An object of JSON as far as its ends show, in ASCII: a terminal or a journal can show it as it is.
bool is_line(const std::string& line) {
  return line.size() >= 2 && line.front() == '{' && line.back() == '}' &&
         std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

struct Inbox::Sender final : Watcher {
  explicit Sender(Inbox& inbox) : inbox(inbox) {}

  void handle(uint32_t) override {
    if (fd) inbox.receive(*this);
  }

  Inbox& inbox;
  Fd fd;
  uint32_t watched = 0;
  long long since_ms = 0;
  std::string line;
  bool is_skipping = false;  // up to the end of a line that is too long
};

Inbox::Inbox(Loop& loop, const InboxLimits& limits, Keeper& keeper)
    : loop_(loop), limits_(limits), keeper_(keeper), allowance_(limits.burst), refilled_ms_(loop.now()) {}

Inbox::~Inbox() {
  for (const auto& sender : senders_) reset_socket(sender->fd);
}

void Inbox::add(Fd accepted) {
  if (senders_.size() >= limits_.connections) {
    ++counts_.full;
    return reset_socket(accepted);
  }
  ++counts_.accepted;
  Sender& sender = *senders_.emplace_back(std::make_unique<Sender>(*this));
  sender.fd = std::move(accepted);
  sender.since_ms = loop_.now();
  if (!loop_.watch(sender.fd.get(), sender.watched, EPOLLIN, sender)) refuse(sender);
}

void Inbox::tidy() {
  for (const auto& sender : senders_) {
    if (sender->fd && limits_.is_single && loop_.now() - sender->since_ms >= kSingleMs) refuse(*sender);
  }
  std::erase_if(senders_, [](const auto& sender) { return !sender->fd; });
}

void Inbox::receive(Sender& sender) {
  char bytes[kReadSize];
  const ssize_t count = recv(sender.fd.get(), bytes, sizeof bytes, 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? void() : refuse(sender);
  // What is not a whole line is dropped.
  if (count == 0) return end(sender);
  for (ssize_t at = 0; at < count; ++at) {
    if (bytes[at] != '\n') {
      if (sender.is_skipping) continue;
      sender.line += bytes[at];
      if (sender.line.size() <= limits_.line) continue;
      ++counts_.invalid;
      if (limits_.is_single) return refuse(sender);
      sender.is_skipping = true;
      sender.line.clear();
      continue;
    }
    if (sender.is_skipping) {
      sender.is_skipping = false;
      continue;
    }
    // A sender that is reset keeps its line and tries again; one whose line is wrong must not do so for ever.
    const bool is_done = take(sender.line);
    sender.line.clear();
    if (limits_.is_single) return is_done ? end(sender) : refuse(sender);
  }
}

// Returns false if the line might be taken later.
bool Inbox::take(const std::string& line) {
  if (!has_allowance()) {
    ++counts_.fast;
    return false;
  }
  if (!is_line(line)) {
    ++counts_.invalid;
    return true;
  }
  if (!keeper_.keep(line)) {
    ++counts_.unkept;
    return false;
  }
  ++counts_.lines;
  return true;
}

bool Inbox::has_allowance() {
  const double seconds = static_cast<double>(loop_.now() - refilled_ms_) / 1000;
  refilled_ms_ = loop_.now();
  allowance_ = std::min(limits_.burst, allowance_ + seconds * limits_.rate);
  if (allowance_ < 1) return false;
  allowance_ -= 1;
  return true;
}

void Inbox::refuse(Sender& sender) { reset_socket(sender.fd); }

void Inbox::end(Sender& sender) { sender.fd.reset(); }

}  // namespace enclave
