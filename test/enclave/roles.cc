// Runs one part of init alone for tests on any machine: the role that the first argument names. It is compiled with all
// files of enclave/init except main.cc.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bridge.h"
#include "clock.h"
#include "console.h"
#include "events.h"
#include "hand_off.h"
#include "nsm.h"
#include "report.h"
#include "settings.h"
#include "socket.h"
#include "supervise.h"
#include "system.h"

namespace {

using namespace enclave;

int usage() {
  fputs("usage: init bridge LISTEN TARGET [CONNECTIONS ENDED_IDLE_MS] | hand-off LISTEN (pipe on 3) | "
        "reports TARGET (pipe on 3) | events TARGET (pipe on 3) | console (pipe on 3) | settings FILE | "
        "correction ptp0|nsm NANOSECONDS | nsm-time NONCE_FILE ANSWER_FILE... | timekeeper USER | server USER | helper USER | "
        "supervise LAST_END LISTEN TARGET (until the pipe on 3 ends)\n", stderr);
  return 2;
}

int bridge(const Address& from, const Address& to, const BridgeLimits& limits) {
  Fd listener = listen_on(from);
  if (listener && end_first()) run_bridge(std::move(listener), to, limits);
  perror("bridge");
  return 1;
}

int hand_off(const Address& from) {
  Fd listener = listen_on(from);
  if (listener && run_hand_off(std::move(listener), Fd(3))) return 0;
  perror("hand-off");
  return 1;
}

// Supervises a bridge, with a fake of the server that runs until the pipe closes.
int supervise_bridge(const char* last_end, const Address& from, const Address& to) {
  const auto bridge = [&from, &to] {
    Fd listener = listen_on(from);
    if (listener) run_bridge(std::move(listener), to);
    return false;
  };
  const auto read_pipe = [] {
    char byte;
    return read(3, &byte, 1) == 0;
  };
  std::vector<Service> services{{"bridge", {}, bridge, start("bridge", {}, bridge)}};
  const std::string reason = supervise(services, start("server", {3}, read_pipe), "server", last_end);
  kill(services.front().pid, SIGTERM);
  puts(reason.c_str());
  return 0;
}

int settings(const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Settings settings;
  std::string reason;
  if (!file || !parse_settings(text, settings, reason)) {
    fprintf(stderr, "settings: %s\n", reason.c_str());
    return 1;
  }
  for (const std::string& variable : settings.environment) printf("env %s\n", variable.c_str());
  for (const Forward& forward : settings.forwards) {
    printf("forward tcp:%s:%u vsock:%u\n", forward.listen.ip.c_str(), forward.listen.port, forward.parent.port);
  }
  for (const Inbound& inbound : settings.inbounds) {
    printf("inbound vsock:%u tcp:%s:%u\n", inbound.listen.port, inbound.target.ip.c_str(), inbound.target.port);
  }
  if (settings.events) puts("events");
  if (settings.secrets) puts("secrets");
  return 0;
}

int correction(const Reference& reference, const char* nanoseconds) {
  const char* names[] = {"none", "slew", "step"};
  puts(names[static_cast<int>(correction_for(reference, atoll(nanoseconds)))]);
  return 0;
}

// Prints the time in each answer of the NSM, as if init had requested the answer with this nonce.
int nsm_time(const char* nonce_path, const std::vector<const char*>& answer_paths) {
  const auto read_bytes = [](const char* path) {
    std::ifstream file(path, std::ios::binary);
    return std::vector<unsigned char>{std::istreambuf_iterator<char>(file), {}};
  };
  const std::vector<unsigned char> nonce = read_bytes(nonce_path);
  for (const char* path : answer_paths) {
    const std::optional<long long> ms = document_time(read_bytes(path), nonce);
    puts(ms ? std::to_string(*ms).c_str() : "none");
  }
  return 0;
}

// Ends a process that may not start another. At a normal exit, the sanitizer would look for leaks in another process.
[[noreturn]] void end_restricted() {
  fflush(stdout);
  _exit(0);
}

[[noreturn]] int print_rights() {
  std::ifstream status("/proc/self/status");
  const std::string text{std::istreambuf_iterator<char>(status), {}};
  fputs(text.c_str(), stdout);
  end_restricted();
}

// Prints the rights of the process that sets the clock.
int timekeeper(unsigned user) {
  if (become_timekeeper(user)) return print_rights();
  perror("timekeeper");
  return 1;
}

const char* describe_start(long pid) {
  if (pid == 0) _exit(0);
  if (pid < 0) return strerror(errno);
  waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return "started";
}

const char* start_thread() {
  try {
    std::thread([] {}).join();
    return "started";
  } catch (const std::system_error& error) {
    return strerror(error.code().value());
  }
}

// Prints what a process of init other than the server can start.
int helper(unsigned user) {
  if (!become_user(user)) {
    perror("helper");
    return 1;
  }
  printf("process: %s\nthread: %s\n", describe_start(fork()), start_thread());
  end_restricted();
}

// Prints the rights of the server's process, the kinds of sockets that it can open, and what it can start.
int server(unsigned user) {
  if (!become_user(user, 64) || !restrict_calls()) {
    perror("server");
    return 1;
  }
  const auto print_socket = [](const char* name, long descriptor) {
    printf("%s: %s\n", name, Fd(static_cast<int>(descriptor)) ? "opened" : strerror(errno));
  };
  print_socket("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  print_socket("inet", socket(AF_INET, SOCK_STREAM, 0));
  print_socket("unix", socket(AF_UNIX, SOCK_STREAM, 0));
  // An x32 program makes the call in this way.
  print_socket("x32", syscall(0x40000000 | SYS_socket, AF_VSOCK, SOCK_STREAM, 0));
  printf("fork: %s\n", describe_start(syscall(SYS_fork)));
  printf("vfork: %s\n", describe_start(syscall(SYS_vfork)));
  printf("clone: %s\n", describe_start(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
  printf("clone3: %s\n", describe_start(syscall(SYS_clone3, nullptr, 0)));
  printf("library: %s\n", describe_start(fork()));
  printf("thread: %s\n", start_thread());
  rlimit tasks{};
  getrlimit(RLIMIT_NPROC, &tasks);
  printf("tasks: %lu of %lu\n", tasks.rlim_cur, tasks.rlim_max);
  return print_rights();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  Address first;
  Address second;
  const bool has_first = argc > 2 && parse_address(argv[2], first);
  if (role == "bridge" && (argc == 4 || argc == 6) && has_first && parse_address(argv[3], second)) {
    BridgeLimits limits;
    if (argc == 6) limits = {strtoul(argv[4], nullptr, 10), atoll(argv[5])};
    return bridge(first, second, limits);
  }
  if (role == "hand-off" && argc == 3 && has_first) return hand_off(first);
  if (role == "reports" && argc == 3 && has_first) return run_reports(Fd(3), first), 0;
  if (role == "events" && argc == 3 && has_first) return run_events(Fd(3), first), 0;
  if (role == "console" && argc == 2) return open_console("/dev/stderr") && print_log(3) ? 0 : 1;
  if (role == "supervise" && argc == 5 && parse_address(argv[3], first) && parse_address(argv[4], second)) {
    return supervise_bridge(argv[2], first, second);
  }
  if (role == "settings" && argc == 3) return settings(argv[2]);
  if (role == "correction" && argc == 4) {
    for (const Reference& reference : {kPtp, kNsm}) {
      if (argv[2] == std::string(reference.name)) return correction(reference, argv[3]);
    }
  }
  if (role == "nsm-time" && argc >= 4) return nsm_time(argv[2], {argv + 3, argv + argc});
  if (role == "timekeeper" && argc == 3) return timekeeper(strtoul(argv[2], nullptr, 10));
  if (role == "server" && argc == 3) return server(strtoul(argv[2], nullptr, 10));
  if (role == "helper" && argc == 3) return helper(strtoul(argv[2], nullptr, 10));
  return usage();
}
