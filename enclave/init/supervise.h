// Starts what an enclave consists of, and keeps it running.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace enclave {

// Something that is started again when it ends.
struct Service {
  std::string name;
  std::vector<int> descriptors;  // what it gets of its parent's, as 3 and up
  std::function<bool()> run;     // in a process of its own; true when there is nothing left to do
  pid_t pid = -1;
};

// Runs a function in a new process, which has only the descriptors named: one that it kept by accident would
// keep a pipe open that another process waits on. -1, with errno, when there can't be one.
pid_t start(const std::string& name, const std::vector<int>& descriptors, const std::function<bool()>& run);

// Starts each service again that fails or is killed, and writes why it ended to `last_end`, a line of text for
// the server and its boot report. Returns when the process `main` has ended, with why.
std::string supervise(std::vector<Service>& services, pid_t main, const std::string& main_name,
                      const char* last_end);

}  // namespace enclave
