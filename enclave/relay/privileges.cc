#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace enclave {

namespace {

// More than any number of enclaves needs; without a limit, a table in the kernel could grow with an attack.
constexpr rlim_t kMaxDescriptors = 256 * 1024;

bool keep_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3]{};
  if (syscall(SYS_capget, &header, rights) != 0) return false;
  const unsigned kept = rights[0].permitted & (1U << CAP_NET_BIND_SERVICE);
  for (auto& part : rights) part = {0, 0, 0};
  rights[0].permitted = rights[0].effective = kept;
  return syscall(SYS_capset, &header, rights) == 0;
}

}  // namespace

size_t raise_descriptors() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  files.rlim_cur = files.rlim_max = std::min(files.rlim_max, kMaxDescriptors);
  return setrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}

bool drop_privileges(unsigned user) {
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (geteuid() == 0 && user != 0) {
    return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0;
  }
  return keep_capabilities();
}

}  // namespace enclave
