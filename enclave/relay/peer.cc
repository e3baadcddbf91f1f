#include "peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "ports.h"

namespace enclave {

namespace {

// One at a time, while an enclave starts and ends: a few seconds of a loop of starts.
constexpr InboxLimits kReports{16, true, 64, 4, 4096};
// With the name before it, a line fits into a page.
constexpr InboxLimits kEvents{4, false, 1000, 100, 4000};

}  // namespace

void Upstream::add(Fd accepted) {
  connections_.has_room() ? connections_.add(std::move(accepted), *this) : connections_.refuse(std::move(accepted));
}

Fd Upstream::dial(size_t& next) {
  const std::vector<ResolvedAddress>& addresses = resolver_.addresses(host_);
  while (next < addresses.size()) {
    const ResolvedAddress& to = addresses[next++];
    Fd fd(socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int yes = 1;
    if (fd) setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const auto* address = reinterpret_cast<const sockaddr*>(&to.address);
    if (fd && (connect(fd.get(), address, to.size) == 0 || errno == EINPROGRESS)) return fd;
  }
  return Fd();
}

Peer::Peer(Loop& loop, Resolver& resolver, const std::string& name, const std::string& state,
           const BridgeLimits& limits)
    : loop_(loop),
      resolver_(resolver),
      limits_(limits),
      report_file_(state + "/" + name + "/reports.jsonl"),
      event_printer_(name),
      reports_(loop, kReports, report_file_),
      events_(loop, kEvents, event_printer_) {}

void Peer::close(const Conf& conf) {
  // Another enclave of the same name: whatever led to the last one is over.
  const bool is_other = conf.cid != conf_.cid;
  std::erase_if(upstreams_, [&](const auto& item) {
    const auto found = conf.upstreams.find(item.first);
    return is_other || found == conf.upstreams.end() || found->second != item.second->host();
  });
  if (is_other) {
    doors_.clear();
    retired_.clear();
  }
  std::vector<std::unique_ptr<Door>> kept;
  for (auto& door : doors_) {
    const bool is_kept = std::find(conf.listens.begin(), conf.listens.end(), door->line()) != conf.listens.end();
    if (is_kept || door->retire()) (is_kept ? kept : retired_).push_back(std::move(door));
  }
  doors_ = std::move(kept);
  conf_ = conf;
}

void Peer::open() {
  for (const auto& [port, host] : conf_.upstreams) {
    auto& upstream = upstreams_[port];
    if (!upstream) upstream = std::make_unique<Upstream>(loop_, resolver_, host, limits_);
  }
  for (const ListenLine& line : conf_.listens) {
    const bool is_there = std::any_of(doors_.begin(), doors_.end(), [&](const auto& door) { return door->line() == line; });
    if (!is_there) doors_.push_back(std::make_unique<Door>(loop_, line, conf_.cid, limits_));
  }
}

void Peer::add(unsigned port, Fd accepted) {
  if (port == kReportPort) return reports_.add(std::move(accepted));
  if (port == kEventPort) return events_.add(std::move(accepted));
  const auto found = upstreams_.find(port);
  if (found != upstreams_.end()) return found->second->add(std::move(accepted));
  ++wrong_ports_;
  reset_socket(accepted);
}

bool Peer::serve() {
  reports_.tidy();
  events_.tidy();
  for (const auto& [port, upstream] : upstreams_) upstream->tidy();
  for (const auto& door : retired_) door->serve();
  std::erase_if(retired_, [](const auto& door) { return door->bridge()->connections().open() == 0; });
  return std::all_of(doors_.begin(), doors_.end(), [](const auto& door) { return door->serve(); });
}

}  // namespace enclave
