#include "keepers.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace enclave {

namespace {

constexpr off_t kMaxFile = 1024 * 1024;

Fd open_end(const std::string& path) {
  return Fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0640));
}

}  // namespace

bool FileKeeper::keep(const std::string& line) {
  const std::string text = line + '\n';
  Fd file = open_end(path_);
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (status.st_size + static_cast<off_t>(text.size()) > kMaxFile) {
    if (rename(path_.c_str(), (path_ + ".old").c_str()) != 0) return false;
    file = open_end(path_);
    if (!file || fstat(file.get(), &status) != 0) return false;
  }
  if (write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return true;
  // The disk is full: half a line would be joined with the next.
  if (ftruncate(file.get(), status.st_size) != 0) perror("relay");
  return false;
}

bool PrintKeeper::keep(const std::string& line) { return print(STDOUT_FILENO, name_ + ' ' + line + '\n'); }

bool print(int fd, const std::string& text) {
  // A pipe that has room takes a page without blocking: lines are bounded to that.
  pollfd ready{fd, POLLOUT, 0};
  return poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0 &&
         write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace enclave
