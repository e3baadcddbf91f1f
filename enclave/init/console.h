// The console, which nobody reads in a production enclave: whatever waits for it would wait for ever.
#pragma once

namespace enclave {

// Makes the file at `path` the output of this process and those it starts; none of them waits for it.
bool open_console(const char* path);

// Passes on what comes from a pipe until its writers have ended, and drops what the console does not take.
// False, with errno, when the pipe can't be read.
bool print_log(int pipe);

}  // namespace enclave
