#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include <linux/vm_sockets.h>

#include "log.h"
#include "metrics.h"
#include "ports.h"
#include "privileges.h"

namespace enclave {

namespace {

#ifndef TICK_MS  // The test build waits for less.
#define TICK_MS 500
#endif
constexpr long long kForgetEveryMs = 60'000;
// Existing connections are served between accepting new ones.
constexpr int kAcceptsOfPort = 64;
constexpr long long kConnectMs = 5000;
// For listeners, inboxes, probes and the process itself.
constexpr size_t kOtherDescriptors = 512;

// The signals of a relay, as events.
class Signals final : Watcher {
 public:
  explicit Signals(Loop& loop) {
    sigset_t set;
    sigemptyset(&set);
    for (const int each : {SIGHUP, SIGTERM, SIGINT}) sigaddset(&set, each);
    // Threads that start later block them too.
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    loop.watch(fd_.get(), watched_, EPOLLIN, *this);
  }

  bool is_to_end() const { return is_to_end_; }
  bool take_hang_up() { return std::exchange(hung_up_, false); }

 private:
  void handle(uint32_t) override {
    signalfd_siginfo info;
    while (read(fd_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGHUP) {
        hung_up_ = true;
      } else {
        is_to_end_ = true;
      }
    }
  }

  Fd fd_;
  uint32_t watched_ = 0;
  bool hung_up_ = false;
  bool is_to_end_ = false;
};

}  // namespace

// A vsock port of the host, for all enclaves.
class Relay::Port final : Watcher {
 public:
  Port(Loop& loop, Fd listener) : listener_(std::move(listener)) { loop.watch(listener_.get(), watched_, EPOLLIN, *this); }

  bool take_arrived() { return std::exchange(arrived_, false); }
  int listener() const { return listener_.get(); }

 private:
  void handle(uint32_t) override { arrived_ = true; }

  Fd listener_;
  uint32_t watched_ = 0;
  bool arrived_ = false;
};

Relay::Relay(Loop& loop, size_t descriptors, const RelayOptions& options)
    : loop_(loop), descriptors_(descriptors), options_(options), resolver_(loop) {
  limits_.connect_ms = kConnectMs;
}

Relay::~Relay() = default;

bool Relay::start(std::string& reason) {
  const auto fail = [&reason](const std::string& what) {
    reason = what + ": " + strerror(errno);
    return false;
  };
  for (const unsigned port : {kReportPort, kEventPort}) {
    if (!open_port(port)) return fail("vsock port " + std::to_string(port));
  }
  if (options_.has_metrics) {
    Fd listener = listen_on(options_.metrics);
    if (!listener) return fail("the port for metrics");
    metrics_ = std::make_unique<Metrics>(loop_, std::move(listener), *this);
  }
  std::vector<std::string> names;
  if (!list_confs(options_.confs, names)) return fail(options_.confs);
  return true;
}

bool Relay::open_port(unsigned port) {
  Fd listener = listen_on({true, "", port});
  if (!listener) return false;
  ports_[port] = std::make_unique<Port>(loop_, std::move(listener));
  return true;
}

void Relay::read_folder() {
  std::vector<std::string> names;
  if (!list_confs(options_.confs, names)) return log(options_.confs + ": " + strerror(errno));
  std::map<std::string, Conf> confs;
  std::map<std::string, std::string> wrong;
  for (const std::string& name : names) {
    Conf conf;
    std::string reason;
    if (read_conf(options_.confs, name, conf, reason)) {
      confs[name] = conf;
      continue;
    }
    wrong[name] = reason;
    const auto peer = peers_.find(name);
    if (peer != peers_.end()) confs[name] = peer->second->conf();
  }
  // An enclave keeps its CID against another file that names it too.
  std::map<unsigned, std::string> owners;
  for (const auto& [name, peer] : peers_) {
    const auto found = confs.find(name);
    if (found != confs.end() && found->second.cid == peer->cid()) owners[peer->cid()] = name;
  }
  for (auto item = confs.begin(); item != confs.end();) {
    auto& [name, conf] = *item;
    const std::string owner = owners.emplace(conf.cid, name).first->second;
    const auto peer = peers_.find(name);
    if (owner != name) {
      wrong[name] = "its CID is that of " + owner;
      if (peer != peers_.end()) conf = peer->second->conf();
    }
    item = owner == name || (peer != peers_.end() && owners.emplace(conf.cid, name).first->second == name)
               ? std::next(item)
               : confs.erase(item);
  }
  for (const auto& [name, reason] : wrong) log(name + ".conf: " + reason);
  wrong_confs_ = wrong.size();

  // First all is closed that is no longer wanted: an address may go from one enclave to another.
  std::erase_if(peers_, [&](const auto& item) { return !confs.contains(item.first); });
  for (const auto& [name, conf] : confs) {
    auto& peer = peers_[name];
    if (!peer) peer = std::make_unique<Peer>(loop_, resolver_, name, options_.state, limits_);
    peer->close(conf);
  }
  share_descriptors();
  by_cid_.clear();
  for (const auto& [name, peer] : peers_) {
    peer->open();
    by_cid_[peer->cid()] = peer.get();
  }
  open_ports();
  write_in_effect();
  log("serves " + std::to_string(peers_.size()) + (peers_.size() == 1 ? " enclave" : " enclaves"));
}

void Relay::open_ports() {
  std::set<unsigned> wanted{kReportPort, kEventPort};
  for (const auto& [name, peer] : peers_) {
    for (const auto& [port, host] : peer->conf().upstreams) wanted.insert(port);
  }
  std::erase_if(ports_, [&](const auto& item) { return !wanted.contains(item.first); });
  for (const unsigned port : wanted) {
    if (!ports_.contains(port) && !open_port(port)) log("vsock port " + std::to_string(port) + ": " + strerror(errno));
  }
}

void Relay::write_in_effect() const {
  std::string text;
  for (const auto& [name, peer] : peers_) text += name + '\n' + format_conf(peer->conf()) + '\n';
  const std::string& path = options_.in_effect;
  const std::string partial = path + ".new";
  // Whatever an earlier relay has left there.
  unlink(partial.c_str());
  const Fd file(open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      rename(partial.c_str(), path.c_str()) != 0) {
    log(path + ": " + strerror(errno));
  }
}

// No enclave's connections may use up what another needs: every listener and every host gets the same part.
void Relay::share_descriptors() {
  size_t parts = 1;
  for (const auto& [name, peer] : peers_) parts += peer->conf().listens.size() + peer->conf().upstreams.size();
  const size_t pairs = descriptors_ > kOtherDescriptors ? (descriptors_ - kOtherDescriptors) / 2 : 0;
  limits_.connections = std::clamp<size_t>(pairs / parts, 1, BridgeLimits().connections);
}

bool Relay::serve() {
  for (const auto& [name, peer] : peers_) {
    if (!peer->serve()) return false;
  }
  for (const auto& [number, port] : ports_) {
    if (port->take_arrived()) accept_some(number, port->listener());
  }
  if (metrics_) metrics_->serve();
  if (loop_.now() - forgot_ms_ >= kForgetEveryMs) {
    forgot_ms_ = loop_.now();
    resolver_.tidy();
  }
  return true;
}

void Relay::accept_some(unsigned port, int listener) {
  for (int times = 0; times < kAcceptsOfPort; ++times) {
    sockaddr_vm from{};
    socklen_t size = sizeof from;
    Fd accepted(accept4(listener, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted) {
      // Out of descriptors or memory: the listener stays readable, so pause to avoid a busy loop.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) usleep(10'000);
      return;
    }
    const auto found = by_cid_.find(from.svm_cid);
    if (found != by_cid_.end()) {
      found->second->add(port, std::move(accepted));
    } else {
      ++unknown_cids_;
      reset_socket(accepted);
    }
  }
}

std::string Relay::metrics() const {
  MetricsText text;
  text.family("relay_enclaves", "gauge", "Enclaves that the relay serves.");
  text.sample("relay_enclaves", "", peers_.size());
  text.family("relay_wrong_files", "gauge", "Files of the folder that are not in effect.");
  text.sample("relay_wrong_files", "", wrong_confs_);
  text.family("relay_connection_limit", "gauge", "Connections that each listener and each host may have.");
  text.sample("relay_connection_limit", "", limits_.connections);
  text.family("relay_unknown_cid", "counter", "Connections of a CID that no file names, which were refused.");
  text.sample("relay_unknown_cid_total", "", unknown_cids_);
  text.family("relay_failed_lookups", "counter", "Lookups of hosts that gave no address.");
  text.sample("relay_failed_lookups_total", "", resolver_.failures());
  // What is summed up over the listeners, or over the hosts, of an enclave: neither is a label.
  struct Sum {
    size_t open = 0;
    ConnectionCounts counts;

    void add(const Connections& connections) {
      const ConnectionCounts& more = connections.counts();
      open += connections.open();
      counts.accepted += more.accepted;
      counts.full += more.full;
      counts.failed += more.failed;
      for (int at = 0; at < 2; ++at) counts.bytes[at] += more.bytes[at];
    }
  };
  std::map<std::string, Sum> inbound;
  std::map<std::string, Sum> outbound;
  for (const auto& [name, peer] : peers_) {
    Sum& in = inbound[name];
    Sum& out = outbound[name];
    for (const auto& door : peer->doors()) {
      if (door->bridge() != nullptr) in.add(door->bridge()->connections());
    }
    for (const auto& [port, upstream] : peer->upstreams()) out.add(upstream->connections());
  }
  const auto both = [&](const char* name, const auto& value) {
    for (const auto& [enclave, sum] : inbound) text.sample(name, label(enclave, "direction", "in"), value(sum));
    for (const auto& [enclave, sum] : outbound) text.sample(name, label(enclave, "direction", "out"), value(sum));
  };
  text.family("relay_connections", "gauge", "Open connections: of callers to the enclave (in), of the enclave to hosts (out).");
  both("relay_connections", [](const Sum& sum) { return sum.open; });
  text.family("relay_accepted", "counter", "Connections that were accepted.");
  both("relay_accepted_total", [](const Sum& sum) { return sum.counts.accepted; });
  text.family("relay_refused", "counter", "Connections that were refused, by reason.");
  for (const auto* sums : {&inbound, &outbound}) {
    for (const auto& [enclave, sum] : *sums) {
      const std::string in = sums == &inbound ? "in" : "out";
      text.sample("relay_refused_total", label(enclave, "direction", in, "reason", "full"), sum.counts.full);
      text.sample("relay_refused_total", label(enclave, "direction", in, "reason", "unreachable"), sum.counts.failed);
    }
  }
  for (const auto& [name, peer] : peers_) {
    text.sample("relay_refused_total", label(name, "direction", "out", "reason", "port"), peer->wrong_ports());
  }
  text.family("relay_bytes", "counter", "Bytes from callers or the enclave (sent), and back (received).");
  for (const auto* sums : {&inbound, &outbound}) {
    for (const auto& [enclave, sum] : *sums) {
      const std::string in = sums == &inbound ? "in" : "out";
      text.sample("relay_bytes_total", label(enclave, "direction", in, "way", "sent"), sum.counts.bytes[0]);
      text.sample("relay_bytes_total", label(enclave, "direction", in, "way", "received"), sum.counts.bytes[1]);
    }
  }
  text.family("relay_listening", "gauge", "Addresses of the host that lead to the enclave, if it answers there.");
  for (const auto& [name, peer] : peers_) {
    const auto open = std::count_if(peer->doors().begin(), peer->doors().end(), [](const auto& door) { return door->is_open(); });
    text.sample("relay_listening", label(name), static_cast<unsigned long long>(open));
  }
  const auto inboxes = [&](const char* name, const auto& value) {
    for (const auto& [enclave, peer] : peers_) {
      text.sample(name, label(enclave, "kind", "report"), value(peer->reports().counts()));
      text.sample(name, label(enclave, "kind", "event"), value(peer->events().counts()));
    }
  };
  text.family("relay_lines", "counter", "Lines of reports and events that were kept.");
  inboxes("relay_lines_total", [](const InboxCounts& counts) { return counts.lines; });
  text.family("relay_dropped_lines", "counter", "Lines that were not kept, by reason.");
  for (const auto& [enclave, peer] : peers_) {
    for (const auto& [kind, inbox] : {std::pair{"report", &peer->reports()}, std::pair{"event", &peer->events()}}) {
      const InboxCounts& counts = inbox->counts();
      const auto reason = [&, kind = kind, &enclave = enclave](const char* name, unsigned long long value) {
        text.sample("relay_dropped_lines_total", label(enclave, "kind", kind, "reason", name), value);
      };
      reason("rate", counts.fast);
      reason("invalid", counts.invalid);
      reason("unwritable", counts.unkept);
      reason("connections", counts.full);
    }
  }
  return text.end();
}

int run_relay(const RelayOptions& options) {
  const size_t descriptors = raise_descriptors();
  Loop loop;
  Signals signals(loop);
  const auto relay = std::make_unique<Relay>(loop, descriptors, options);
  std::string reason;
  if (!loop || !relay->start(reason)) {
    log(reason.empty() ? strerror(errno) : reason);
    return 1;
  }
  // Opens ports below 1024 before it drops the right to.
  relay->read_folder();
  if (!drop_privileges(options.user)) {
    log(std::string("can't drop its privileges: ") + strerror(errno));
    return 1;
  }
  while (!signals.is_to_end()) {
    if (!relay->serve() || !loop.run_round(TICK_MS)) {
      log(strerror(errno));
      return 1;
    }
    if (signals.take_hang_up()) relay->read_folder();
  }
  return 0;
}

}  // namespace enclave
