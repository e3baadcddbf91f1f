// The settings in the application's ramdisk: measured with the image, so that an operator can't change them.
#pragma once

#include <string>
#include <vector>

#include "socket.h"

namespace enclave {

// Forwards an address on loopback to the parent's vsock port for one endpoint.
struct Forward {
  Address listen;
  Address parent;
};

// Forwards a vsock port of the enclave, which the parent connects to, to an address on loopback.
struct Inbound {
  Address listen;
  Address target;
};

struct Settings {
  std::vector<std::string> environment;  // NAME=VALUE, for the server
  std::vector<Forward> forwards;
  std::vector<Inbound> inbounds;
  bool secrets = false;  // whether the application needs secrets
  bool events = false;   // whether the server sends events
};

// Lines `env NAME=VALUE`, `forward LISTEN PARENT`, `inbound LISTEN TARGET`, `secrets` and `events`,
// as src/cli/image/settings.ts writes them. Returns false, with a reason, for any other line.
bool parse_settings(const std::string& text, Settings& settings, std::string& reason);

}  // namespace enclave
