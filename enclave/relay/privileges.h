// What the relay may do.
#pragma once

#include <stddef.h>

namespace enclave {

// Raises the limit on open descriptors as far as this user may. Returns it.
size_t raise_descriptors();

// Never gets new privileges, and keeps no capability but the one to open TCP ports below 1024. As root, becomes the
// user, if it is not 0, and then keeps none. Returns false, with errno, if that fails.
bool drop_privileges(unsigned user);

}  // namespace enclave
