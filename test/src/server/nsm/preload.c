/*
 * Stands in for the NSM driver in a process that runs the real addon (LD_PRELOAD): opening NSM_TEST_DEVICE connects
 * to the Unix socket NSM_TEST_SOCKET, where the test answers, and NSM_IOCTL_RAW becomes one exchange over it. All
 * numbers on the socket are 32 bits in the host's byte order.
 *
 *   open:   > flags                              < errno
 *   ioctl:  > room, length, request              < errno, reported length, length, answer
 *
 * Like the driver, it silently cuts an answer to the size of the buffer. It passes on a reported length other than
 * TRUTHFUL unchanged, which the driver would not do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define IOCTL_RAW 0xC0200A00UL
#define TRUTHFUL UINT32_MAX

struct raw {
  uint64_t request, request_length, response, response_length;
};

static int send_all(int fd, const void *data, size_t length) {
  for (const char *at = data; length > 0;) {
    ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
    if (sent <= 0) return -1;
    at += sent;
    length -= sent;
  }
  return 0;
}

static int receive_all(int fd, void *data, size_t length) {
  for (char *at = data; length > 0;) {
    ssize_t received = recv(fd, at, length, 0);
    if (received <= 0) return -1;
    at += received;
    length -= received;
  }
  return 0;
}

static int is_device(const char *path) {
  const char *device = getenv("NSM_TEST_DEVICE");
  return device != NULL && strcmp(path, device) == 0;
}

static int open_device(int flags) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, getenv("NSM_TEST_SOCKET"), sizeof address.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0), 0);
  uint32_t sent = flags, error = EIO;
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
      send_all(fd, &sent, sizeof sent) == 0 && receive_all(fd, &error, sizeof error) == 0 && error == 0) {
    return fd;
  }
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

static int exchange(int fd, struct raw *raw) {
  uint32_t request[2] = {raw->response_length, raw->request_length};
  struct {
    uint32_t error, reported, length;
  } answer;
  if (send_all(fd, request, sizeof request) != 0 ||
      send_all(fd, (void *)(uintptr_t)raw->request, raw->request_length) != 0 ||
      receive_all(fd, &answer, sizeof answer) != 0) {
    errno = EIO;
    return -1;
  }
  char *bytes = malloc(answer.length + 1);
  int received = bytes == NULL ? -1 : receive_all(fd, bytes, answer.length);
  if (received != 0 || answer.error != 0) {
    free(bytes);
    errno = received != 0 ? EIO : (int)answer.error;
    return -1;
  }
  uint64_t room = raw->response_length;
  raw->response_length = answer.length < room ? answer.length : room;
  memcpy((void *)(uintptr_t)raw->response, bytes, raw->response_length);
  if (answer.reported != TRUTHFUL) raw->response_length = answer.reported;
  free(bytes);
  return 0;
}

#define OPEN(name)                                                                \
  int name(const char *path, int flags, ...) {                                    \
    va_list arguments;                                                            \
    va_start(arguments, flags);                                                   \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;  \
    va_end(arguments);                                                            \
    if (is_device(path)) return open_device(flags);                               \
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);                \
    return real(path, flags, mode);                                               \
  }
OPEN(open)
OPEN(open64)

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  if (request == IOCTL_RAW) return exchange(fd, argument);
  int (*real)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
  return real(fd, request, argument);
}
