// Starts the processes of an enclave and keeps them running.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace enclave {

// A process that is restarted when it ends.
struct Service {
  std::string name;
  std::vector<int> descriptors;  // inherited from init, numbered from 3
  std::function<bool()> run;     // runs in the process; true: finished, don't restart
  pid_t pid = -1;
};

// Runs a function in a new process that inherits only the given descriptors: any other could keep a pipe open whose end
// another process waits for. Returns -1, with errno, if fork fails.
pid_t start(const std::string& name, const std::vector<int>& descriptors, const std::function<bool()>& run);

// Restarts each service that fails or is killed, and writes the reason to `last_end`, one line for the server and its
// boot report. Returns when the process `main` has ended, with the reason.
std::string supervise(std::vector<Service>& services, pid_t main, const std::string& main_name,
                      const char* last_end);

}  // namespace enclave
