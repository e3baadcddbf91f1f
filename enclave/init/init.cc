#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "bridge.h"
#include "clock.h"
#include "console.h"
#include "events.h"
#include "hand_off.h"
#include "report.h"
#include "settings.h"
#include "socket.h"
#include "supervise.h"
#include "system.h"

namespace enclave {

namespace {

// Vsock ports. The parent listens on the first three, the enclave on the others.
constexpr Address kHeartbeat{true, "", 9000};
constexpr Address kLog{true, "", 7778};
constexpr Address kEvents{true, "", 7779};
constexpr Address kSecrets{true, "", 7777};
constexpr Address kInbound{true, "", 3000};
const Address kServer{false, "127.0.0.1", 3000};

constexpr char kSettingsPath[] = "/app/enclave.conf";
constexpr char kClockFolder[] = "/run/clock";
constexpr char kClockPath[] = "/run/clock/state";
constexpr char kLastEndPath[] = "/run/last_end";
constexpr unsigned char kHeartbeatByte = 0xb7;
constexpr int kHeartbeatMs = 5000;

constexpr unsigned kServerUser = 1000;
// Node has about ten; UV_THREADPOOL_SIZE and an application's workers add to these.
constexpr unsigned kServerThreads = 256;
constexpr unsigned kBridgeUser = 1001;
constexpr unsigned kHandOffUser = 1002;
constexpr unsigned kReportUser = 1003;
constexpr unsigned kClockUser = 1004;
constexpr unsigned kConsoleUser = 1005;
constexpr unsigned kEventsUser = 1006;

// Reports the reason on the console, readable in debug mode, and on the parent's log port.
[[noreturn]] void end_enclave(const std::string& reason) {
  fprintf(stderr, "init: the enclave ends: %s\n", reason.c_str());
  std::string line = "{\"event\":\"end\",\"reason\":\"";
  for (const char each : reason) line += each == '"' || each == '\\' || each < ' ' ? '\'' : each;
  send_report(kLog, line + "\"}\n");
  sync();
  reboot(RB_AUTOBOOT);
  _exit(1);
}

[[noreturn]] void end_with_errno(const std::string& what) { end_enclave(what + ": " + strerror(errno)); }

// nitro-cli waits for this heartbeat; without it, it terminates the enclave without giving a reason.
void report_in() {
  const Fd parent = connect_to(kHeartbeat);
  unsigned char byte = kHeartbeatByte;
  if (!parent || !wait_connected(parent.get(), kHeartbeatMs) || !send_all(parent.get(), &byte, 1, kHeartbeatMs) ||
      !receive_all(parent.get(), &byte, 1, kHeartbeatMs)) {
    end_with_errno("the parent did not take the heartbeat");
  }
  if (byte != kHeartbeatByte) end_enclave("the parent answered the heartbeat with another byte");
}

Settings read_settings() {
  std::ifstream file(kSettingsPath);
  if (!file) end_enclave(std::string(kSettingsPath) + " is missing");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Settings settings;
  std::string reason;
  if (!parse_settings(text, settings, reason)) end_enclave(std::string(kSettingsPath) + ": " + reason);
  return settings;
}

// Figures and the like need few connections, and the parent alone reaches these ports.
constexpr BridgeLimits kSmall{16, 10'000};

Service bridge(const std::string& name, const Address& from, const Address& to, const BridgeLimits& limits = {}) {
  return {name, {}, [from, to, limits] {
            // Opens a port below 1024 as root, and serves it without privileges.
            Fd listener = listen_on(from);
            // Callers control how much memory it uses, and init can restart it, unlike the server.
            if (listener && end_first() && become_user(kBridgeUser)) run_bridge(std::move(listener), to, limits);
            return false;
          }};
}

// Descriptors: 3 for reports, 4 for the pipe to the console, then one for secrets and one for events, if there are any.
// Without vsock, whoever takes the server over can reach only what the bridges lead to: no other port of the parent, and
// not the log port. The server needs no other process, and one could outlive it, and keep its pipes open.
bool serve(const Settings& settings) {
  std::vector<std::string> environment = settings.environment;
  environment.push_back("REPORT_FD=3");
  int next = 5;
  if (settings.secrets) environment.push_back("SECRETS_FD=" + std::to_string(next++));
  if (settings.events) environment.push_back("EVENTS_FD=" + std::to_string(next++));
  if (dup2(4, STDOUT_FILENO) < 0 || dup2(4, STDERR_FILENO) < 0) return false;
  close(4);
  // Without the first, SIGUSR1 would open a debugger. The second, in MiB, keeps short-lived objects from spreading over
  // more memory the longer a load lasts.
  if (become_user(kServerUser, kServerThreads) && restrict_calls()) {
    execute({"/bin/node", "--disable-sigusr1", "--max-semi-space-size=8", "/app/server.js"}, environment);
  }
  return false;
}

bool hand_off() {
  Fd listener = listen_on(kSecrets);
  return listener && become_user(kHandOffUser) && run_hand_off(std::move(listener), Fd(3));
}

bool report() {
  if (!become_user(kReportUser)) return false;
  run_reports(Fd(3), kLog);
  return true;
}

bool send_events() {
  if (!become_user(kEventsUser)) return false;
  run_events(Fd(3), kEvents);
  return true;
}

bool keep_time() {
  const ClockDevices devices = open_clock_devices();
  if (become_timekeeper(kClockUser)) run_clock(devices, kClockPath);
  return false;
}

void make_pipe(Fd& reading, Fd& writing) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) end_with_errno("pipe");
  reading = Fd(ends[0]);
  writing = Fd(ends[1]);
}

}  // namespace

void run_init() {
  std::string failed;
  if (!prepare_system(failed)) end_with_errno(failed);
  report_in();
  const Settings settings = read_settings();
  if (!make_folder(kClockFolder, kClockUser)) end_with_errno(kClockFolder);
  steer_clock(open_clock_devices(), kClockPath);
  if (!reserve_nsm(kServerUser)) end_with_errno("/dev/nsm");
  if (!seal_root()) end_with_errno("the root can't be made read-only");

  Fd secrets_out;
  Fd secrets_in;
  Fd reports_out;
  Fd reports_in;
  make_pipe(secrets_out, secrets_in);
  make_pipe(reports_out, reports_in);
  Fd log_out;
  Fd log_in;
  make_pipe(log_out, log_in);
  Fd events_out;
  Fd events_in;
  if (settings.events) make_pipe(events_out, events_in);

  std::vector<Service> services;
  const auto add = [&services](Service service) {
    service.pid = start(service.name, service.descriptors, service.run);
    if (service.pid < 0) end_with_errno("fork");
    services.push_back(std::move(service));
  };
  add(bridge("inbound bridge", kInbound, kServer));
  add({"console", {log_out.get()}, [] { return become_user(kConsoleUser) && print_log(3); }});
  std::vector<int> server_ends{reports_in.get(), log_in.get()};
  if (settings.secrets) server_ends.push_back(secrets_out.get());
  if (settings.events) server_ends.push_back(events_in.get());
  const pid_t server = start("server", server_ends, [&settings] { return serve(settings); });
  if (server < 0) end_with_errno("fork");
  // Now only the server holds these ends: it can close the one for secrets, and its exit closes the others.
  secrets_out.reset();
  reports_in.reset();
  log_in.reset();
  events_in.reset();
  for (const Forward& forward : settings.forwards) {
    add(bridge("bridge to port " + std::to_string(forward.parent.port), forward.listen, forward.parent));
  }
  for (const Inbound& inbound : settings.inbounds) {
    add(bridge("bridge from port " + std::to_string(inbound.listen.port), inbound.listen, inbound.target, kSmall));
  }
  if (settings.secrets) add({"hand-off", {secrets_in.get()}, hand_off});
  add({"clock", {}, keep_time});
  if (settings.events) add({"events", {events_out.get()}, send_events});
  add({"reports", {reports_out.get()}, report});
  const std::string reason = supervise(services, server, "server", kLastEndPath);
  // They may still have the server's last lines; their own time-outs bound these waits.
  for (const Service& service : services) {
    const bool has_lines = service.name == "reports" || service.name == "events";
    if (has_lines && service.pid > 0) waitpid(service.pid, nullptr, 0);
  }
  end_enclave(reason);
}

}  // namespace enclave
