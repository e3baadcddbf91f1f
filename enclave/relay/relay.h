// The relay of a host: leads its enclaves' connections to the Internet, callers to its enclaves, and keeps their
// reports. It tells enclaves apart by their CIDs, which the hypervisor gives them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "peer.h"

namespace enclave {

struct RelayOptions {
  std::string confs;      // folder
  std::string state;      // folder with one for each enclave
  std::string in_effect;  // file
  bool has_metrics = false;
  Address metrics;
  unsigned user = 0;  // to become; 0 for none
};

class Metrics;

class Relay {
 public:
  // `descriptors`: how many may be open.
  Relay(Loop& loop, size_t descriptors, const RelayOptions& options);
  ~Relay();

  // Listens for reports and events, and reads the folder. Returns false, with a reason, if another relay runs.
  bool start(std::string& reason);
  // Reads the folder again, and writes to the file `in_effect` what is served: for each enclave a line with its name, the
  // lines of its file, and an empty one. A file that is wrong is reported, and what it said before stays.
  void read_folder();
  // After each round. Returns false, with errno, if a system call fails for good.
  bool serve();

  // In the text format of OpenMetrics.
  std::string metrics() const;

 private:
  class Port;

  bool open_port(unsigned port);
  void open_ports();
  void write_in_effect() const;
  void share_descriptors();
  void accept_some(unsigned port, int listener);

  Loop& loop_;
  const size_t descriptors_;
  BridgeLimits limits_;
  const RelayOptions options_;
  Resolver resolver_;
  std::map<std::string, std::unique_ptr<Peer>> peers_;
  std::map<unsigned, Peer*> by_cid_;
  std::map<unsigned, std::unique_ptr<Port>> ports_;
  std::unique_ptr<Metrics> metrics_;
  unsigned long long unknown_cids_ = 0;
  unsigned long long wrong_confs_ = 0;
  long long forgot_ms_ = 0;
};

// Serves until SIGTERM. SIGHUP reads the folder again. Returns the exit code.
int run_relay(const RelayOptions& options);

}  // namespace enclave
