// The console. In a production enclave nobody reads it: a blocking write to it would block for ever.
#pragma once

namespace enclave {

// Redirects the output of this process and its children to the file at `path`, without blocking.
bool open_console(const char* path);

// Copies a pipe to the console until its writers have closed it, and drops what the console does not accept.
// Returns false, with errno, if the pipe can't be read.
bool print_log(int pipe);

}  // namespace enclave
