// The first process of the enclave.
#pragma once

namespace enclave {

// Boots the enclave and looks after it until it ends, which reboots the machine: it never returns.
[[noreturn]] void run_init();

}  // namespace enclave
