// What the relay does for one enclave: the file NAME.conf, which src/cli/parent/relay.ts writes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../init/socket.h"

namespace enclave {

struct ListenLine {
  Address address;  // of the host, TCP
  unsigned port = 0;  // of the enclave, vsock

  std::string text() const { return address.ip + ":" + std::to_string(address.port); }
  bool operator==(const ListenLine& other) const {
    return address.ip == other.address.ip && address.port == other.address.port && port == other.port;
  }
};

struct Conf {
  unsigned cid = 0;
  // The vsock ports of the host that are forwarded to a host on the Internet, at port 443.
  std::map<unsigned, std::string> upstreams;
  std::vector<ListenLine> listens;
};

// Lines `cid CID`, `upstream PORT HOST` and `listen ADDRESS:PORT VSOCKPORT`. Returns false, with a reason, for any
// other line, for one that is there twice, and without a CID.
bool parse_conf(const std::string& text, Conf& conf, std::string& reason);

// The lines that parse_conf reads as this.
std::string format_conf(const Conf& conf);

// Reads it from the folder. The name is that of the enclave. Returns false, with a reason.
bool read_conf(const std::string& folder, const std::string& name, Conf& conf, std::string& reason);

// The names of the enclaves that have a file, in alphabetical order. Returns false, with errno, if the folder can't be
// read.
bool list_confs(const std::string& folder, std::vector<std::string>& names);

// A number in decimal, without a sign or leading zeros.
bool parse_number(const std::string& text, unsigned least, unsigned most, unsigned& number);

}  // namespace enclave
