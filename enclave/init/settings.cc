#include "settings.h"

namespace enclave {

namespace {

// Two addresses, one on vsock and one on loopback. Returns false if the text is anything else.
bool parse_pair(const std::string& text, Address& from, Address& to) {
  const size_t space = text.find(' ');
  return space != std::string::npos && parse_address(text.substr(0, space), from) &&
         parse_address(text.substr(space + 1), to) && from.vsock != to.vsock;
}

bool parse_line(const std::string& line, Settings& settings) {
  if (line == "secrets") {
    settings.secrets = true;
    return true;
  }
  if (line == "events") {
    settings.events = true;
    return true;
  }
  if (line.starts_with("env ")) {
    settings.environment.push_back(line.substr(4));
    return line.find('=') != std::string::npos;
  }
  if (line.starts_with("forward ")) {
    Forward forward;
    if (!parse_pair(line.substr(8), forward.listen, forward.parent) || forward.listen.vsock) return false;
    settings.forwards.push_back(forward);
    return true;
  }
  if (line.starts_with("inbound ")) {
    Inbound inbound;
    if (!parse_pair(line.substr(8), inbound.listen, inbound.target) || inbound.target.vsock) return false;
    settings.inbounds.push_back(inbound);
    return true;
  }
  return false;
}

}  // namespace

bool parse_settings(const std::string& text, Settings& settings, std::string& reason) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (end == std::string::npos || !parse_line(line, settings)) {
      reason = "a line is not understood: " + line;
      return false;
    }
    at = end + 1;
  }
  return true;
}

}  // namespace enclave
