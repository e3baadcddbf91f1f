#include "nsm.h"

#include <sys/ioctl.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace enclave {

namespace {

using Bytes = std::span<const unsigned char>;

// As in the kernel's linux/nsm.h, which the headers of older distributions lack.
struct NsmIovec {
  uint64_t addr;
  uint64_t len;
};
struct NsmRaw {
  NsmIovec request;
  NsmIovec response;
};
constexpr unsigned long kIoctlRaw = _IOWR(0x0A, 0x0, NsmRaw);
constexpr size_t kResponseMax = 0x3000;
static_assert(sizeof(NsmRaw) == 32 && kIoctlRaw == 0xC0200A00);

constexpr size_t kNonceBytes = 16;
// The years 2020 to 2099. Outside of them something is wrong with the time, or with its unit.
constexpr uint64_t kEarliestMs = 1'577'836'800'000;
constexpr uint64_t kEndMs = 4'102'444'800'000;

// Major types of RFC 8949, section 3.1.
enum Major : unsigned { kUnsigned = 0, kBytes = 2, kText = 3, kArray = 4, kMap = 5, kTag = 6 };
constexpr uint64_t kCoseSign1 = 18;
// The additional information that stands for an indefinite length, and the byte that ends one.
constexpr unsigned kIndefinite = 31;
constexpr unsigned char kBreak = 0xff;
constexpr uint64_t kUntilBreak = UINT64_MAX;
// Documents have lists in maps in the payload, nothing deeper.
constexpr int kMaxDepth = 8;

// Reads CBOR from the front; each function returns false if something else is there, or the bytes end.
class Reader {
 public:
  explicit Reader(Bytes bytes) : left_(bytes) {}

  // The argument of an item; of a float, its bytes.
  bool head(unsigned major, uint64_t& value) {
    if (left_.empty() || left_.front() >> 5 != major) return false;
    const unsigned info = left_.front() & 0x1f;
    if (info > 27) return false;
    const size_t size = info < 24 ? 0 : size_t{1} << (info - 24);
    if (left_.size() - 1 < size) return false;
    value = size == 0 ? info : 0;
    for (const unsigned char byte : left_.subspan(1, size)) value = value << 8 | byte;
    left_ = left_.subspan(1 + size);
    return true;
  }

  bool head_is(unsigned major, uint64_t expected) {
    uint64_t value;
    return head(major, value) && value == expected;
  }

  // The content of a byte or text string.
  bool string(unsigned major, Bytes& content) {
    uint64_t size;
    if (!head(major, size) || size > left_.size()) return false;
    content = left_.first(size);
    left_ = left_.subspan(size);
    return true;
  }

  bool text_is(std::string_view expected) {
    Bytes text;
    return string(kText, text) && std::ranges::equal(text, expected);
  }

  // An array or a map: how many entries it has, for next_entry. Newer firmware leaves the end to a break.
  bool open(unsigned major, uint64_t& entries) {
    if (left_.empty() || left_.front() != (major << 5 | kIndefinite)) return head(major, entries);
    left_ = left_.subspan(1);
    entries = kUntilBreak;
    return true;
  }

  // Returns whether another entry follows: also if the bytes end too early, so that reading the entry fails.
  bool next_entry(uint64_t& entries) {
    if (entries != kUntilBreak) return entries-- > 0;
    if (left_.empty() || left_.front() != kBreak) return true;
    left_ = left_.subspan(1);
    return false;
  }

  // One item with all that is in it.
  bool skip(int depth = kMaxDepth) {
    if (left_.empty() || depth == 0) return false;
    const unsigned major = left_.front() >> 5;
    uint64_t entries;
    Bytes ignored;
    if (major == kBytes || major == kText) return string(major, ignored);
    if (major == kTag) return head(major, entries) && skip(depth - 1);
    if (major != kArray && major != kMap) return head(major, entries);
    if (!open(major, entries)) return false;
    while (next_entry(entries)) {
      if (!skip(depth - 1) || (major == kMap && !skip(depth - 1))) return false;
    }
    return true;
  }

  bool skip_tag(uint64_t tag) {
    Reader ahead = *this;
    if (ahead.head_is(kTag, tag)) *this = ahead;
    return true;
  }

  bool at_end() const { return left_.empty(); }

 private:
  Bytes left_;
};

// The payload of the COSE_Sign1 (RFC 9052, section 4.2) in the answer.
bool find_payload(Bytes answer, Bytes& payload) {
  Reader outer(answer);
  Bytes document;
  if (!outer.head_is(kMap, 1) || !outer.text_is("Attestation") || !outer.head_is(kMap, 1) ||
      !outer.text_is("document") || !outer.string(kBytes, document) || !outer.at_end()) {
    return false;
  }
  Reader cose(document);
  Bytes ignored;
  return cose.skip_tag(kCoseSign1) && cose.head_is(kArray, 4) && cose.string(kBytes, ignored) && cose.skip() &&
         cose.string(kBytes, payload) && cose.string(kBytes, ignored) && cose.at_end();
}

// {"Attestation": {"user_data": null, "nonce": bytes, "public_key": null}}
std::string attestation_request(Bytes nonce) {
  std::string request = "\xa1\x6b" "Attestation" "\xa3\x69" "user_data" "\xf6\x65" "nonce";
  request += static_cast<char>(kBytes << 5 | nonce.size());
  for (const unsigned char byte : nonce) request += static_cast<char>(byte);
  return request + "\x6a" "public_key" "\xf6";
}

}  // namespace

std::optional<long long> document_time(Bytes answer, Bytes nonce) {
  Bytes payload;
  if (!find_payload(answer, payload)) return {};
  Reader fields(payload);
  uint64_t entries;
  if (!fields.open(kMap, entries)) return {};
  bool is_ours = false;
  std::optional<uint64_t> time;
  while (fields.next_entry(entries)) {
    Bytes name;
    if (!fields.string(kText, name)) return {};
    if (std::ranges::equal(name, std::string_view("timestamp"))) {
      uint64_t value;
      if (time || !fields.head(kUnsigned, value)) return {};
      time = value;
    } else if (std::ranges::equal(name, std::string_view("nonce"))) {
      Bytes value;
      if (is_ours || !fields.string(kBytes, value) || !std::ranges::equal(value, nonce)) return {};
      is_ours = true;
    } else if (!fields.skip()) {
      return {};
    }
  }
  if (!fields.at_end() || !is_ours || !time || *time < kEarliestMs || *time >= kEndMs) return {};
  return static_cast<long long>(*time);
}

std::optional<long long> ask_nsm_time(int device) {
  std::array<unsigned char, kNonceBytes> nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) return {};
  const std::string request = attestation_request(nonce);
  // The largest buffer that is possible, because the driver silently truncates a longer answer.
  std::array<unsigned char, kResponseMax> response;
  NsmRaw raw{{reinterpret_cast<uintptr_t>(request.data()), request.size()},
             {reinterpret_cast<uintptr_t>(response.data()), response.size()}};
  if (ioctl(device, kIoctlRaw, &raw) < 0 || raw.response.len > response.size()) return {};
  return document_time(Bytes(response).first(raw.response.len), nonce);
}

}  // namespace enclave
