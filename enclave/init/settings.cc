#include "settings.h"

namespace enclave {

namespace {

bool parse_line(const std::string& line, Settings& settings) {
  if (line == "secrets") {
    settings.secrets = true;
    return true;
  }
  if (line.starts_with("env ")) {
    settings.environment.push_back(line.substr(4));
    return line.find('=') != std::string::npos;
  }
  if (line.starts_with("forward ")) {
    const size_t space = line.find(' ', 8);
    if (space == std::string::npos) return false;
    Forward forward;
    if (!parse_address(line.substr(8, space - 8), forward.listen) || forward.listen.vsock) return false;
    if (!parse_address(line.substr(space + 1), forward.parent) || !forward.parent.vsock) return false;
    settings.forwards.push_back(forward);
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
