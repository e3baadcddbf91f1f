// An enclave, as the relay sees it: all that is open for it, within bounds of its own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conf.h"
#include "door.h"
#include "inbox.h"
#include "keepers.h"
#include "resolver.h"

namespace enclave {

// A host on the Internet, for one enclave.
class Upstream final : Target {
 public:
  Upstream(Loop& loop, Resolver& resolver, std::string host, const BridgeLimits& limits)
      : resolver_(resolver), host_(std::move(host)), connections_(loop, limits) {}
  Upstream(const Upstream&) = delete;

  const std::string& host() const { return host_; }
  void add(Fd accepted);
  void tidy() { connections_.tidy(); }
  const Connections& connections() const { return connections_; }

 private:
  bool is_known() override { return resolver_.is_known(host_); }
  Fd dial(size_t& next) override;

  Resolver& resolver_;
  const std::string host_;
  Connections connections_;
};

class Peer {
 public:
  Peer(Loop& loop, Resolver& resolver, const std::string& name, const std::string& state, const BridgeLimits& limits);

  unsigned cid() const { return conf_.cid; }
  const Conf& conf() const { return conf_; }
  // Closes what the new conf does not have. `open` then opens what it has, once all enclaves have closed theirs. Where an
  // address is given up, connections that were made there before may end in their own time.
  void close(const Conf& conf);
  void open();

  // A connection of the enclave to a vsock port of the host.
  void add(unsigned port, Fd accepted);
  // After each round. Returns false, with errno, if a system call fails for good.
  bool serve();

  // For the metrics.
  const std::vector<std::unique_ptr<Door>>& doors() const { return doors_; }
  const std::map<unsigned, std::unique_ptr<Upstream>>& upstreams() const { return upstreams_; }
  const Inbox& reports() const { return reports_; }
  const Inbox& events() const { return events_; }
  unsigned long long wrong_ports() const { return wrong_ports_; }

 private:
  Loop& loop_;
  Resolver& resolver_;
  const BridgeLimits& limits_;
  Conf conf_;
  FileKeeper report_file_;
  PrintKeeper event_printer_;
  Inbox reports_;
  Inbox events_;
  std::map<unsigned, std::unique_ptr<Upstream>> upstreams_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Door>> retired_;
  unsigned long long wrong_ports_ = 0;
};

}  // namespace enclave
