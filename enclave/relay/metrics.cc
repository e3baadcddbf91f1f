#include "metrics.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "relay.h"

namespace enclave {

namespace {

// Nobody needs more than one or two. A further one takes the place of the oldest, so that idle ones keep nobody out.
constexpr size_t kMaxReaders = 16;
constexpr size_t kMaxRequest = 8192;
constexpr long long kReaderMs = 5000;

}  // namespace

struct Metrics::Reader final : Watcher {
  explicit Reader(Metrics& metrics) : metrics(metrics) {}

  void handle(uint32_t) override {
    if (fd) metrics.answer(*this);
  }

  Metrics& metrics;
  Fd fd;
  uint32_t watched = 0;
  long long since_ms = 0;
  std::string request;
  std::string unsent;
};

void MetricsText::family(const std::string& name, const char* type, const char* help) {
  text_ += "# TYPE " + name + ' ' + type + "\n# HELP " + name + ' ' + help + '\n';
}

void MetricsText::sample(const std::string& name, const std::string& labels, unsigned long long value) {
  text_ += name + labels + ' ' + std::to_string(value) + '\n';
}

std::string label(const std::string& enclave, const std::string& name, const std::string& value,
                  const std::string& other_name, const std::string& other_value) {
  std::string text = "{enclave=\"" + enclave + '"';
  if (!name.empty()) text += ',' + name + "=\"" + value + '"';
  if (!other_name.empty()) text += ',' + other_name + "=\"" + other_value + '"';
  return text + '}';
}

Metrics::Metrics(Loop& loop, Fd listener, const Relay& relay)
    : loop_(loop), listener_(std::move(listener)), relay_(relay) {
  loop_.watch(listener_.get(), watched_, EPOLLIN, *this);
}

Metrics::~Metrics() = default;

void Metrics::handle(uint32_t) { arrived_ = true; }

void Metrics::serve() {
  for (const auto& reader : readers_) {
    if (loop_.now() - reader->since_ms >= kReaderMs) reset_socket(reader->fd);
  }
  std::erase_if(readers_, [](const auto& reader) { return !reader->fd; });
  if (!std::exchange(arrived_, false)) return;
  Fd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) return;
  // In the order of their arrival. No event of this round is left that could lead to the oldest.
  if (readers_.size() >= kMaxReaders) {
    reset_socket(readers_.front()->fd);
    readers_.erase(readers_.begin());
  }
  Reader& reader = *readers_.emplace_back(std::make_unique<Reader>(*this));
  reader.fd = std::move(accepted);
  reader.since_ms = loop_.now();
  if (!loop_.watch(reader.fd.get(), reader.watched, EPOLLIN, reader)) reset_socket(reader.fd);
}

void Metrics::answer(Reader& reader) {
  if (reader.unsent.empty()) {
    char bytes[1024];
    const ssize_t count = recv(reader.fd.get(), bytes, sizeof bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return reset_socket(reader.fd);
    reader.request.append(bytes, static_cast<size_t>(count));
    if (reader.request.size() > kMaxRequest) return reset_socket(reader.fd);
    if (reader.request.find("\r\n\r\n") == std::string::npos) return;
    const bool is_known = reader.request.starts_with("GET /metrics HTTP/1.");
    const std::string body = is_known ? relay_.metrics() : "";
    reader.unsent = std::string("HTTP/1.1 ") + (is_known ? "200 OK" : "404 Not Found") +
                    "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
  }
  const ssize_t sent = send(reader.fd.get(), reader.unsent.data(), reader.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return reset_socket(reader.fd);
  if (sent > 0) reader.unsent.erase(0, static_cast<size_t>(sent));
  if (reader.unsent.empty()) return reader.fd.reset();
  loop_.watch(reader.fd.get(), reader.watched, EPOLLOUT, reader);
}

}  // namespace enclave
