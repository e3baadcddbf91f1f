#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace {

enum Request : uint32_t {
  kGetFeatures = 1,
  kSetFeatures = 2,
  kSetOwner = 3,
  kSetMemoryTable = 5,
  kSetVringNum = 8,
  kSetVringAddress = 9,
  kSetVringBase = 10,
  kGetVringBase = 11,
  kSetVringKick = 12,
  kSetVringCall = 13,
  kSetVringErr = 14,
  kGetProtocolFeatures = 15,
  kSetProtocolFeatures = 16,
  kGetQueueNum = 17,
  kSetVringEnable = 18,
  kGetConfig = 24,
};

constexpr uint64_t kVersion1 = 1ULL << 32;
constexpr uint64_t kHasProtocolFeatures = 1ULL << 30;
constexpr uint64_t kMq = 1 << 0;
constexpr uint64_t kReplyAck = 1 << 3;
constexpr uint64_t kConfig = 1 << 9;

constexpr uint32_t kVersion = 1;
constexpr uint32_t kIsReply = 1 << 2;
constexpr uint32_t kNeedsReply = 1 << 3;
constexpr size_t kMaxPayload = 4096;
constexpr size_t kMaxDescriptors = 8;

constexpr uint16_t kNext = 1;
constexpr uint16_t kWrite = 2;

struct Message {
  uint32_t request;
  uint32_t flags;
  uint32_t size;
};

[[noreturn]] void fail(const char* reason) {
  fprintf(stderr, "vsock_host: %s\n", reason);
  exit(1);
}

template <typename T>
T load(const char* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(char* to, T value) {
  memcpy(to, &value, sizeof value);
}

bool read_exactly(int fd, void* to, size_t size) {
  return size == 0 || recv(fd, to, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

}  // namespace

bool Device::serve_frontend() {
  Message message;
  iovec part{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  if (recvmsg(frontend_, &header, MSG_WAITALL | MSG_CMSG_CLOEXEC) != sizeof message) return false;
  std::vector<int> descriptors;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry; entry = CMSG_NXTHDR(&header, entry)) {
    const size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) descriptors.push_back(load<int>(reinterpret_cast<char*>(CMSG_DATA(entry)) + i * sizeof(int)));
  }
  char payload[kMaxPayload] = {};
  if (message.size > sizeof payload) fail("the frontend sent more than a message can hold");
  if (!read_exactly(frontend_, payload, message.size)) return false;

  const auto index = load<uint32_t>(payload);
  const auto number = load<uint32_t>(payload + 4);
  const auto queue = [&]() -> Queue& {
    // For the eventfds, the index is in the lowest byte, and bit 8 is set if there is no eventfd.
    const bool is_event = message.request >= kSetVringKick && message.request <= kSetVringErr;
    const uint32_t at = is_event ? index & 0xff : index;
    if (at >= queues_.size()) fail("the frontend named a queue that does not exist");
    return queues_[at];
  };
  const auto replace = [&](int& target) {
    if (target >= 0) close(target);
    target = descriptors.empty() ? -1 : descriptors[0];
  };
  switch (message.request) {
    case kGetFeatures: {
      const uint64_t features = kVersion1 | kHasProtocolFeatures;
      reply(message.request, &features, sizeof features);
      return true;
    }
    case kGetProtocolFeatures: {
      const uint64_t features = kMq | kReplyAck | kConfig;
      reply(message.request, &features, sizeof features);
      return true;
    }
    case kGetQueueNum: {
      const uint64_t count = queues_.size();
      reply(message.request, &count, sizeof count);
      return true;
    }
    case kGetConfig: {
      // Offset, size and flags, then the requested bytes: the configuration is the guest's CID.
      if (index > sizeof guest_cid_ || number > sizeof guest_cid_ - index) fail("the frontend asked for more configuration than there is");
      memcpy(payload + 12, reinterpret_cast<char*>(&guest_cid_) + index, number);
      reply(message.request, payload, 12 + number);
      return true;
    }
    case kGetVringBase: {
      const uint32_t state[2] = {index, queue().next};
      queue().enabled = false;
      reply(message.request, state, sizeof state);
      return true;
    }
    case kSetFeatures:
    case kSetProtocolFeatures:
    case kSetOwner:
      break;
    case kSetMemoryTable:
      map_memory(payload, descriptors);
      break;
    case kSetVringNum:
      queue().size = number;
      break;
    case kSetVringBase:
      queue().next = static_cast<uint16_t>(number);
      break;
    case kSetVringAddress:
      queue().descriptors = at_user(load<uint64_t>(payload + 8));
      queue().used = at_user(load<uint64_t>(payload + 16));
      queue().available = at_user(load<uint64_t>(payload + 24));
      break;
    case kSetVringKick:
      replace(queue().kick);
      break;
    case kSetVringCall:
      replace(queue().call);
      break;
    case kSetVringErr:
      for (const int descriptor : descriptors) close(descriptor);
      break;
    case kSetVringEnable:
      queue().enabled = number != 0;
      break;
    default:
      fprintf(stderr, "vsock_host: request %u is not known\n", message.request);
      exit(1);
  }
  if (message.flags & kNeedsReply) {
    const uint64_t success = 0;
    reply(message.request, &success, sizeof success);
  }
  return true;
}

void Device::reply(uint32_t request, const void* payload, uint32_t size) {
  std::vector<char> bytes(sizeof(Message) + size);
  store(bytes.data(), Message{request, kVersion | kIsReply, size});
  memcpy(bytes.data() + sizeof(Message), payload, size);
  if (send(frontend_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) fail("the frontend does not accept the reply");
}

void Device::map_memory(const char* payload, const std::vector<int>& descriptors) {
  for (const Region& region : regions_) munmap(region.memory, region.size);
  regions_.clear();
  const auto count = load<uint32_t>(payload);
  if (count != descriptors.size()) fail("a memory region came without its descriptor");
  for (uint32_t i = 0; i < count; ++i) {
    const char* at = payload + 8 + i * 32;
    Region region{load<uint64_t>(at), load<uint64_t>(at + 8), load<uint64_t>(at + 16), nullptr};
    void* memory = mmap(nullptr, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[i], static_cast<off_t>(load<uint64_t>(at + 24)));
    if (memory == MAP_FAILED) fail("the guest's memory can't be mapped");
    region.memory = static_cast<char*>(memory);
    regions_.push_back(region);
    close(descriptors[i]);
  }
}

char* Device::at_user(uint64_t address) const {
  for (const Region& region : regions_) {
    if (address >= region.user && address - region.user < region.size) return region.memory + (address - region.user);
  }
  fail("the frontend named an address outside the guest's memory");
}

char* Device::at_guest(uint64_t address, uint64_t size) const {
  for (const Region& region : regions_) {
    if (address >= region.guest && address - region.guest <= region.size && size <= region.size - (address - region.guest)) {
      return region.memory + (address - region.guest);
    }
  }
  fail("the guest named an address outside its memory");
}

bool Device::peek(Queue& queue, uint16_t& head, std::vector<Piece>& pieces) {
  if (!queue.enabled || queue.available == nullptr) return false;
  const auto filled = __atomic_load_n(reinterpret_cast<uint16_t*>(queue.available + 2), __ATOMIC_ACQUIRE);
  if (filled == queue.next) return false;
  head = load<uint16_t>(queue.available + 4 + 2 * (queue.next % queue.size));
  pieces.clear();
  for (uint16_t at = head; pieces.size() <= queue.size;) {
    if (at >= queue.size) fail("the guest named a descriptor that does not exist");
    const char* descriptor = queue.descriptors + 16 * at;
    const auto size = load<uint32_t>(descriptor + 8);
    const auto flags = load<uint16_t>(descriptor + 12);
    pieces.push_back({at_guest(load<uint64_t>(descriptor), size), size, (flags & kWrite) != 0});
    if (!(flags & kNext)) return true;
    at = load<uint16_t>(descriptor + 14);
  }
  fail("the guest's descriptors form a circle");
}

void Device::finish(Queue& queue, uint16_t head, uint32_t written) {
  ++queue.next;
  auto* filled = reinterpret_cast<uint16_t*>(queue.used + 2);
  char* entry = queue.used + 4 + 8 * (*filled % queue.size);
  store<uint32_t>(entry, head);
  store<uint32_t>(entry + 4, written);
  __atomic_store_n(filled, static_cast<uint16_t>(*filled + 1), __ATOMIC_SEQ_CST);
  const auto flags = __atomic_load_n(reinterpret_cast<uint16_t*>(queue.available), __ATOMIC_SEQ_CST);
  const uint64_t increment = 1;
  if (!(flags & 1) && queue.call >= 0 && write(queue.call, &increment, sizeof increment) < 0) fail("the guest can't be notified");
}

bool Device::take(Header& header, std::vector<char>& data) {
  uint16_t head;
  std::vector<Piece> pieces;
  if (!peek(queues_[1], head, pieces)) return false;
  std::vector<char> bytes;
  for (const Piece& piece : pieces) {
    if (!piece.writable) bytes.insert(bytes.end(), piece.data, piece.data + piece.size);
  }
  if (bytes.size() < sizeof header) fail("the guest sent less than a header");
  memcpy(&header, bytes.data(), sizeof header);
  if (header.length != bytes.size() - sizeof header) fail("a packet of the guest does not have the length in its header");
  keep(bytes);
  data.assign(bytes.begin() + sizeof header, bytes.end());
  finish(queues_[1], head, 0);
  return true;
}

ssize_t Device::room() {
  uint16_t head;
  std::vector<Piece> pieces;
  if (!peek(queues_[0], head, pieces)) return -1;
  size_t size = 0;
  for (const Piece& piece : pieces) size += piece.writable ? piece.size : 0;
  if (size < sizeof(Header)) fail("a buffer of the guest is too small for a header");
  return static_cast<ssize_t>(size - sizeof(Header));
}

void Device::give(const Header& header, const char* data) {
  uint16_t head;
  std::vector<Piece> pieces;
  if (!peek(queues_[0], head, pieces)) fail("there is no buffer for a packet");
  std::vector<char> bytes(sizeof header + header.length);
  memcpy(bytes.data(), &header, sizeof header);
  if (header.length > 0) memcpy(bytes.data() + sizeof header, data, header.length);
  keep(bytes);
  size_t copied = 0;
  for (const Piece& piece : pieces) {
    if (!piece.writable) continue;
    const size_t size = std::min<size_t>(piece.size, bytes.size() - copied);
    memcpy(piece.data, bytes.data() + copied, size);
    copied += size;
  }
  if (copied != bytes.size()) fail("a packet is larger than its buffer");
  finish(queues_[0], head, static_cast<uint32_t>(copied));
}

void Device::keep(const std::vector<char>& packet) const {
  if (record_ >= 0 && write(record_, packet.data(), packet.size()) != static_cast<ssize_t>(packet.size())) fail("the record can't be written");
}
