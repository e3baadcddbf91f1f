#include "loop.h"

#include <errno.h>
#include <sys/epoll.h>

namespace enclave {

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool Loop::watch(int fd, uint32_t& watched, uint32_t want, Watcher& watcher) {
  if (want == watched) return true;
  epoll_event event{};
  event.events = want;
  event.data.ptr = &watcher;
  const int change = watched == 0 ? EPOLL_CTL_ADD : want == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  watched = want;
  return epoll_ctl(epoll_.get(), change, fd, &event) == 0;
}

bool Loop::run_round(int timeout_ms) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, timeout_ms);
  if (count < 0 && errno != EINTR) return false;
  now_ = now_ms();
  for (int i = 0; i < count; ++i) static_cast<Watcher*>(events[i].data.ptr)->handle(events[i].events);
  return true;
}

}  // namespace enclave
