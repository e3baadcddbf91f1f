// The first process of the enclave.
#pragma once

namespace enclave {

// Boots and supervises the enclave. Never returns: when the enclave ends, it reboots the machine.
[[noreturn]] void run_init();

}  // namespace enclave
