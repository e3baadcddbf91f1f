// What the application's ramdisk tells init: measured with the image, so that an operator can't change it.
#pragma once

#include <string>
#include <vector>

#include "socket.h"

namespace enclave {

// From an address on loopback to the parent's vsock port that leads to one endpoint.
struct Forward {
  Address listen;
  Address parent;
};

struct Settings {
  std::vector<std::string> environment;  // NAME=VALUE, for the server
  std::vector<Forward> forwards;
  bool secrets = false;  // whether the application needs any
};

// Lines `env NAME=VALUE`, `forward LISTEN PARENT` and `secrets`, as scripts/image/settings.ts writes them.
// False with a reason when there is any other.
bool parse_settings(const std::string& text, Settings& settings, std::string& reason);

}  // namespace enclave
