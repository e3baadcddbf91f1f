// The relay's own messages.
#pragma once

#include <string>

namespace enclave {

// Writes a line to standard error, if that does not block.
void log(const std::string& text);

}  // namespace enclave
