// The program of a host that stands between its enclaves and the network: out/relay.
#include <stdio.h>

#include <string>
#include <vector>

#include "conf.h"
#include "pass.h"
#include "ports.h"
#include "relay.h"

namespace {

using namespace enclave;

int usage() {
  fputs(
      "usage: relay serve FOLDER STATE [--in-effect FILE] [--metrics 127.0.0.1:PORT] [--user ID]\n"
      "       relay pass CID PORT\n"
      "serve: FOLDER has a file NAME.conf for each enclave, which SIGHUP reads again; its reports go to\n"
      "       STATE/NAME/reports.jsonl, its events to standard output, and what is in effect to FILE, by default\n"
      "       FOLDER/in_effect. SIGTERM ends it.\n"
      "pass:  standard input goes to an enclave, and its answer to standard output.\n",
      stderr);
  return 2;
}

bool parse_options(const std::vector<std::string>& words, RelayOptions& options) {
  options.confs = words[1];
  options.state = words[2];
  options.in_effect = options.confs + "/in_effect";
  for (size_t at = 3; at < words.size(); at += 2) {
    if (at + 1 == words.size()) return false;
    const std::string& value = words[at + 1];
    if (words[at] == "--metrics") {
      options.has_metrics = parse_address("tcp:" + value, options.metrics) && options.metrics.ip.starts_with("127.");
      if (!options.has_metrics) return false;
    } else if (words[at] == "--in-effect") {
      options.in_effect = value;
    } else if (words[at] != "--user" || !parse_number(value, 1, 0x7fffffff, options.user)) {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 3 && words[0] == "serve") {
    RelayOptions options;
    return parse_options(words, options) ? run_relay(options) : usage();
  }
  unsigned cid = 0;
  unsigned port = 0;
  if (words.size() == 3 && words[0] == "pass" && parse_number(words[1], kFirstCid, kLastCid, cid) &&
      parse_number(words[2], 1, 65535, port)) {
    return pass_through(cid, port);
  }
  return usage();
}
