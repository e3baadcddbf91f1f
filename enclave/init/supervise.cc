#include "supervise.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system.h"

namespace enclave {

namespace {

#ifndef RESTART_DELAY_US  // The test build waits for less.
#define RESTART_DELAY_US 200'000
#endif
constexpr unsigned kRestartDelayUs = RESTART_DELAY_US;
constexpr int kRestartTries = 100;

std::string describe_end(const std::string& name, int status) {
  return "the " + name + (WIFSIGNALED(status) ? " was ended by signal " + std::to_string(WTERMSIG(status))
                                              : " ended with status " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace

pid_t start(const std::string& name, const std::vector<int>& descriptors, const std::function<bool()>& run) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const bool done = keep_descriptors(descriptors) && run();
  if (!done) fprintf(stderr, "init: %s: %s\n", name.c_str(), strerror(errno));
  _exit(done ? 0 : 1);
}

std::string supervise(std::vector<Service>& services, pid_t main, const std::string& main_name,
                      const char* last_end) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) return std::string("waitpid: ") + strerror(errno);
    if (ended == main) return describe_end(main_name, status);
    for (Service& service : services) {
      if (service.pid != ended) continue;
      service.pid = -1;
      // For example the hand-off, which is final.
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
      const std::string reason = describe_end(service.name, status);
      fprintf(stderr, "init: %s, and is started again\n", reason.c_str());
      if (!write_state(last_end, reason + "\n")) perror("init: the reason of the last end");
      // If memory ran out, a new process may not start immediately.
      for (int tries = 0; tries < kRestartTries && service.pid < 0; ++tries) {
        usleep(kRestartDelayUs);
        service.pid = start(service.name, service.descriptors, service.run);
      }
      if (service.pid < 0) return "the " + service.name + " can't be started again: " + strerror(errno);
      break;
    }
  }
}

}  // namespace enclave
