// How the first process prepares the machine and restricts the processes that it starts.
#pragma once

#include <string>
#include <vector>

namespace enclave {

// Mounts, loopback, kernel settings. Returns false, with errno and the name of the failed step.
bool prepare_system(std::string& failed);

// Restricts the NSM to this user and root: whoever can use it can have any key attested. Returns true if there is no
// NSM, false with errno on failure.
bool reserve_nsm(unsigned user);

// Makes the root read-only; only /run, which is in memory, stays writable.
bool seal_root();

// Makes a folder below /run that this user may write to and every process may read. Returns false, with errno, on failure.
bool make_folder(const char* path, unsigned user);

// Writes a file atomically, readable by every process. Returns false, with errno, on failure.
bool write_state(const char* path, const std::string& text);

// Makes this process the first that the kernel kills when memory runs out. Call it before become_user. Returns false,
// with errno, on failure.
bool end_first();

// Drops root permanently: neither this process nor its children can regain a privilege. `threads` is the most that all
// processes of this user may have together; with 0, this one can start neither a process nor a thread. Returns false,
// with errno, on failure.
bool become_user(unsigned id, unsigned threads = 0);

// Keeps this process from opening vsock sockets: to it, the kernel has none (EAFNOSUPPORT). And from starting processes
// (EPERM); threads it can start. Call it after become_user. Returns false, with errno, on failure.
bool restrict_calls();

// become_user, except for the right to set the clock.
bool become_timekeeper(unsigned id);

// Leaves exactly these descriptors open, renumbered from 3, and makes standard input empty.
bool keep_descriptors(const std::vector<int>& descriptors);

// Executes the program with exactly the given environment. Returns only on failure.
void execute(const std::vector<std::string>& command, const std::vector<std::string>& environment);

}  // namespace enclave
