#include "pass.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "../init/socket.h"

namespace enclave {

namespace {

constexpr int kDialMs = 5000;
// The enclave's server answers when it has read and checked all of it.
constexpr int kAnswerMs = 20'000;
constexpr size_t kMaxInput = 1024 * 1024;

int fail(const char* what) {
  fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
  return 1;
}

bool read_input(std::vector<char>& input) {
  for (size_t size = 0;;) {
    input.resize(size + 4096);
    const ssize_t count = read(STDIN_FILENO, input.data() + size, 4096);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    size += static_cast<size_t>(count);
    input.resize(size);
    if (count == 0) return true;
    errno = EFBIG;
    if (size > kMaxInput) return false;
  }
}

}  // namespace

int pass_through(unsigned cid, unsigned port) {
  std::vector<char> input;
  if (!read_input(input)) return fail("standard input");
  const Fd fd = connect_to({true, "", port}, cid);
  if (!fd || !wait_connected(fd.get(), kDialMs)) return fail("the enclave does not listen");
  if (!send_all(fd.get(), input.data(), input.size(), kAnswerMs)) return fail("the enclave did not take it");
  shutdown(fd.get(), SHUT_WR);
  const long long until = now_ms() + kAnswerMs;
  char byte;
  for (long long left = kAnswerMs; left > 0; left = until - now_ms()) {
    errno = 0;
    if (!receive_all(fd.get(), &byte, 1, static_cast<int>(left))) return errno == ENODATA ? 0 : fail("the enclave's answer");
    if (write(STDOUT_FILENO, &byte, 1) != 1) return fail("standard output");
  }
  errno = ETIMEDOUT;
  return fail("the enclave's answer");
}

}  // namespace enclave
