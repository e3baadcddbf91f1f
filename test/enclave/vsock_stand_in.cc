// Replaces AF_VSOCK in the test build of the relay by TCP on loopback, with the linker's --wrap. The CID is the last
// byte of an address of the network VSOCK_NET (such as 127.20.1), and the host has the CID 3. A peer chooses its CID by
// the address from which it connects. If HOSTS names a file with lines `NAME ADDRESS PORT`, lookups use this file. The
// address `slow` makes a lookup take 3 s.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include <fstream>
#include <sstream>
#include <string>

extern "C" {

int __real_socket(int family, int type, int protocol);
int __real_bind(int fd, const sockaddr* address, socklen_t size);
int __real_connect(int fd, const sockaddr* address, socklen_t size);
int __real_accept4(int fd, sockaddr* address, socklen_t* size, int flags);
int __real_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list);

static sockaddr_in loopback_address(const sockaddr* address, unsigned any) {
  const auto* vm = reinterpret_cast<const sockaddr_vm*>(address);
  const char* network = getenv("VSOCK_NET");
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<uint16_t>(vm->svm_port));
  const unsigned cid = vm->svm_cid == VMADDR_CID_ANY ? any : vm->svm_cid;
  inet_pton(AF_INET, (std::string(network != nullptr ? network : "") + "." + std::to_string(cid)).c_str(), &in.sin_addr);
  return in;
}

int __wrap_socket(int family, int type, int protocol) {
  return __real_socket(family == AF_VSOCK ? AF_INET : family, type, protocol);
}

int __wrap_bind(int fd, const sockaddr* address, socklen_t size) {
  if (address->sa_family != AF_VSOCK) {
    // Tests listen on loopback only.
    sockaddr_in in = *reinterpret_cast<const sockaddr_in*>(address);
    if (in.sin_addr.s_addr == htonl(INADDR_ANY)) in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return __real_bind(fd, reinterpret_cast<const sockaddr*>(&in), size);
  }
  const sockaddr_in in = loopback_address(address, 3);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return __real_bind(fd, reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

int __wrap_connect(int fd, const sockaddr* address, socklen_t size) {
  if (address->sa_family != AF_VSOCK) return __real_connect(fd, address, size);
  const sockaddr_in in = loopback_address(address, 0);
  return __real_connect(fd, reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

// Only a vsock listener asks for the peer's address.
int __wrap_accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (address == nullptr) return __real_accept4(fd, address, size, flags);
  sockaddr_in in{};
  socklen_t in_size = sizeof in;
  const int accepted = __real_accept4(fd, reinterpret_cast<sockaddr*>(&in), &in_size, flags);
  auto* vm = reinterpret_cast<sockaddr_vm*>(address);
  *vm = {};
  vm->svm_family = AF_VSOCK;
  vm->svm_cid = ntohl(in.sin_addr.s_addr) & 0xff;
  return accepted;
}

int __wrap_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  const char* path = getenv("HOSTS");
  if (path == nullptr) return __real_getaddrinfo(host, service, hints, list);
  std::ifstream file(path);
  *list = nullptr;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, address, port;
    words >> name >> address >> port;
    if (name != host) continue;
    if (address == "slow") {
      sleep(3);
      continue;
    }
    addrinfo numeric{};
    numeric.ai_socktype = SOCK_STREAM;
    numeric.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo** last = list;
    while (*last != nullptr) last = &(*last)->ai_next;
    if (__real_getaddrinfo(address.c_str(), port.c_str(), &numeric, last) != 0) return EAI_FAIL;
  }
  return *list == nullptr ? EAI_NONAME : 0;
}

}  // extern "C"
