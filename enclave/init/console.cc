#include "console.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "socket.h"

namespace enclave {

bool open_console(const char* path) {
  const Fd console(open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return console && dup2(console.get(), STDOUT_FILENO) >= 0 && dup2(console.get(), STDERR_FILENO) >= 0;
}

bool print_log(int pipe) {
  char bytes[4096];
  for (ssize_t count; (count = read(pipe, bytes, sizeof bytes)) != 0;) {
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, bytes, static_cast<size_t>(count));
  }
  return true;
}

}  // namespace enclave
