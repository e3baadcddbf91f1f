#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "console.h"
#include "socket.h"

namespace enclave {

namespace {

constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
constexpr unsigned kFirstX32Call = 0x40000000;
constexpr rlim_t kOpenFiles = 16 * 1024;
// Minimum, initial and maximum size of a buffer in bytes. By default a stalled reader makes a loopback connection
// buffer 8 MB, and a few of them exhaust the kernel's memory for TCP in a small enclave.
constexpr char kTcpBuffers[] = "4096 16384 131072";

bool write_setting(const char* path, const char* value) {
  const Fd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), value, strlen(value)) == static_cast<ssize_t>(strlen(value));
}

// The kernel assigns 127.0.0.1/8 when the interface goes up.
bool raise_loopback() {
  const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP;
  return any && ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

// The kernel of the build may know fewer capabilities than this one, or more.
bool drop_bounding_set() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return false;
  }
  return true;
}

}  // namespace

bool prepare_system(std::string& failed) {
  umask(022);
  const auto step = [&failed](const char* name, bool done) {
    if (!done) failed = name;
    return done;
  };
  return step("mount /dev", mount("dev", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755") == 0) &&
         step("/dev/console", open_console("/dev/console")) &&
         // Users can't see each other's processes.
         step("mount /proc", mount("proc", "/proc", "proc", kPlain, "hidepid=2") == 0) &&
         step("mount /run", mount("run", "/run", "tmpfs", kPlain, "mode=0755,size=64k") == 0) &&
         step("loopback", raise_loopback()) &&
         step("TCP buffers", write_setting("/proc/sys/net/ipv4/tcp_rmem", kTcpBuffers) &&
                                 write_setting("/proc/sys/net/ipv4/tcp_wmem", kTcpBuffers)) &&
         step("ptrace_scope", write_setting("/proc/sys/kernel/yama/ptrace_scope", "3")) &&
         // No process reads an address of the kernel, not even in the form of a hash.
         step("kptr_restrict", write_setting("/proc/sys/kernel/kptr_restrict", "2"));
}

bool reserve_nsm(unsigned user) {
  // The driver creates it accessible to everyone.
  if (chmod("/dev/nsm", 0600) != 0) return errno == ENOENT;
  return chown("/dev/nsm", user, user) == 0;
}

bool seal_root() { return mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0; }

bool make_folder(const char* path, unsigned user) { return mkdir(path, 0755) == 0 && chown(path, user, user) == 0; }

bool write_state(const char* path, const std::string& text) {
  const std::string partial = std::string(path) + ".new";
  const Fd file(open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  return file && fchmod(file.get(), 0644) == 0 &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         rename(partial.c_str(), path) == 0;
}

bool end_first() { return write_setting("/proc/self/oom_score_adj", "1000"); }

bool become_user(unsigned id, unsigned threads) {
  const rlimit none{0, 0};
  const rlimit files{kOpenFiles, kOpenFiles};
  const rlimit tasks{threads, threads};
  return drop_bounding_set() && setrlimit(RLIMIT_CORE, &none) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0 &&
         setrlimit(RLIMIT_NPROC, &tasks) == 0 &&
         prctl(PR_SET_DUMPABLE, 0) == 0 && setgroups(0, nullptr) == 0 && setresgid(id, id, id) == 0 &&
         setresuid(id, id, id) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool become_timekeeper(unsigned id) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3]{};
  rights[0].permitted = rights[0].effective = 1U << CAP_SYS_TIME;
  return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && become_user(id) && syscall(SYS_capset, &header, rights) == 0;
}

bool restrict_calls() {
  // One architecture, and the numbers of its native calls only: without the second test, x32's calls would pass. The
  // flags of clone3 are in memory, where a filter can't see them: without it, the C library starts threads by clone.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 14),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstX32Call, 12, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 9, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 9, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_vfork, 8, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 3, 5),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 3, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

bool keep_descriptors(const std::vector<int>& descriptors) {
  const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (empty < 0 || dup2(empty, STDIN_FILENO) < 0) return false;
  // Move the sources away first: a target number may be that of another source.
  std::vector<int> copies;
  for (const int descriptor : descriptors) copies.push_back(fcntl(descriptor, F_DUPFD, 64));
  int next = 3;
  for (const int copy : copies) {
    if (copy < 0 || dup2(copy, next++) < 0) return false;
  }
  return close_range(static_cast<unsigned>(next), ~0U, 0) == 0;
}

void execute(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
  };
  execve(command.front().c_str(), pointers(command).data(), pointers(environment).data());
}

}  // namespace enclave
