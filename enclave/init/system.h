// What the first process does to the machine, and what it takes from the processes that it starts.
#pragma once

#include <string>
#include <vector>

namespace enclave {

// Mounts, loopback, kernel settings. False, with errno and the name of the step that failed.
bool prepare_system(std::string& failed);

// Lets this user, and none other but root, use the NSM: whoever can, has any key attested. True where there is
// no NSM. False, with errno.
bool reserve_nsm(unsigned user);

// Nothing can be written any more but what is in memory below /run.
bool seal_root();

// A folder below /run that this user may write to, and every process may read. False, with errno.
bool make_folder(const char* path, unsigned user);

// Writes a file that every process may read, and that is always seen whole. False, with errno.
bool write_state(const char* path, const std::string& text);

// Has the kernel end this process before others when memory runs out. Before become_user. False, with errno.
bool end_first();

// Gives up root for good: no process that is started this way can get a right back.
bool become_user(unsigned id);

// become_user, but for the one right to set the clock.
bool become_timekeeper(unsigned id);

// Leaves exactly these descriptors open, as 3 and up, and standard input empty.
bool keep_descriptors(const std::vector<int>& descriptors);

// Becomes the program, with nothing in its environment but what is given. Returns only when it can't.
void execute(const std::vector<std::string>& command, const std::vector<std::string>& environment);

}  // namespace enclave
