// Looks up hosts in threads, so that a slow name server holds up nobody else. Statically linked: nothing is loaded.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../init/loop.h"

namespace enclave {

struct ResolvedAddress {
  sockaddr_storage address;
  socklen_t size;
};

class Resolver final : Watcher {
 public:
  // Starts the threads.
  explicit Resolver(Loop& loop);
  ~Resolver();

  // Whether an answer is there that is still fresh, which may be that there are no addresses. Asks if not.
  bool is_known(const std::string& host);
  // The last answer.
  const std::vector<ResolvedAddress>& addresses(const std::string& host);
  // Forgets what nobody has asked for lately.
  void tidy();

  unsigned long long failures() const { return failures_; }

 private:
  struct Entry {
    std::vector<ResolvedAddress> addresses;
    bool is_asked = false;
    long long until_ms = 0;
  };
  using Answer = std::pair<std::string, std::vector<ResolvedAddress>>;

  void handle(uint32_t events) override;
  void work();

  Loop& loop_;
  Fd answered_;
  uint32_t watched_ = 0;
  std::map<std::string, Entry> entries_;
  unsigned long long failures_ = 0;
  std::mutex mutex_;  // of the following
  std::condition_variable asked_;
  std::deque<std::string> questions_;
  std::vector<Answer> answers_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace enclave
