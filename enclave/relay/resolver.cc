#include "resolver.h"

#include <netinet/in.h>
#include <nss.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>

namespace enclave {

namespace {

// A name server that does not answer holds up a thread for seconds.
constexpr int kThreads = 8;
constexpr size_t kMaxAddresses = 8;
constexpr long long kFreshMs = 30'000;
constexpr long long kFailedMs = 1000;
constexpr long long kForgetMs = 10 * 60 * 1000;

std::vector<ResolvedAddress> look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
  addrinfo* first = nullptr;
  std::vector<ResolvedAddress> addresses;
  if (getaddrinfo(host.c_str(), "443", &hints, &first) != 0) return addresses;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(first, freeaddrinfo);
  for (const addrinfo* entry = first; entry != nullptr && addresses.size() < kMaxAddresses; entry = entry->ai_next) {
    ResolvedAddress& address = addresses.emplace_back();
    address.size = entry->ai_addrlen;
    memcpy(&address.address, entry->ai_addr, entry->ai_addrlen);
  }
  return addresses;
}

}  // namespace

Resolver::Resolver(Loop& loop) : loop_(loop), answered_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Both are part of the C library; others would be loaded, which a statically linked program can't do.
  __nss_configure_lookup("hosts", "files dns");
  setenv("RES_OPTIONS", "timeout:2 attempts:2", 0);
  loop_.watch(answered_.get(), watched_, EPOLLIN, *this);
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
}

Resolver::~Resolver() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    questions_.clear();
  }
  asked_.notify_all();
  // As long as one lookup takes, at most.
  for (std::thread& thread : threads_) thread.join();
}

bool Resolver::is_known(const std::string& host) {
  Entry& entry = entries_[host];
  if (loop_.now() < entry.until_ms) return true;
  if (!entry.is_asked) {
    entry.is_asked = true;
    const std::lock_guard lock(mutex_);
    questions_.push_back(host);
    asked_.notify_one();
  }
  return false;
}

const std::vector<ResolvedAddress>& Resolver::addresses(const std::string& host) { return entries_[host].addresses; }

void Resolver::tidy() {
  std::erase_if(entries_, [this](const auto& item) {
    return !item.second.is_asked && loop_.now() - item.second.until_ms > kForgetMs;
  });
}

void Resolver::handle(uint32_t) {
  uint64_t ignored;
  if (read(answered_.get(), &ignored, sizeof ignored) < 0) return;
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    answers.swap(answers_);
  }
  for (Answer& answer : answers) {
    Entry& entry = entries_[answer.first];
    entry.is_asked = false;
    entry.addresses = std::move(answer.second);
    if (entry.addresses.empty()) ++failures_;
    entry.until_ms = loop_.now() + (entry.addresses.empty() ? kFailedMs : kFreshMs);
  }
}

void Resolver::work() {
  for (;;) {
    std::string host;
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, [this] { return ends_ || !questions_.empty(); });
      if (ends_) return;
      host = std::move(questions_.front());
      questions_.pop_front();
    }
    std::vector<ResolvedAddress> addresses = look_up(host);
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(std::move(host), std::move(addresses));
    const uint64_t one = 1;
    if (write(answered_.get(), &one, sizeof one) < 0) return;
  }
}

}  // namespace enclave
