#include "conf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "ports.h"

namespace enclave {

namespace {

constexpr size_t kMaxConf = 64 * 1024;
constexpr size_t kMaxUpstreams = 64;
constexpr size_t kMaxListens = 8;
constexpr size_t kMaxName = 64;
constexpr size_t kMaxHost = 253;
constexpr char kSuffix[] = ".conf";

bool is_name(const std::string& text) {
  const auto is_letter = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return !text.empty() && text.size() <= kMaxName && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || c == '_' || c == '.' || c == '-'; });
}

// No less than app.yaml allows.
bool is_host(const std::string& text) {
  return text.size() <= kMaxHost && text.find('.') != std::string::npos && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-'; });
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool parse_line(const std::string& line, Conf& conf) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() == 2 && words[0] == "cid") {
    return conf.cid == 0 && parse_number(words[1], kFirstCid, kLastCid, conf.cid);
  }
  if (words.size() == 3 && words[0] == "upstream") {
    unsigned port = 0;
    return parse_number(words[1], 1, 65535, port) && port != kReportPort && port != kEventPort && is_host(words[2]) &&
           conf.upstreams.size() < kMaxUpstreams && conf.upstreams.emplace(port, words[2]).second;
  }
  if (words.size() == 3 && words[0] == "listen") {
    ListenLine listen;
    if (!parse_address("tcp:" + words[1], listen.address) || !parse_number(words[2], 1, 65535, listen.port)) return false;
    const bool is_new = std::none_of(conf.listens.begin(), conf.listens.end(),
                                     [&](const ListenLine& other) { return other.text() == listen.text(); });
    conf.listens.push_back(listen);
    return is_new && conf.listens.size() <= kMaxListens;
  }
  return false;
}

// For a message: what a conf holds may be anything.
std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 200)) out += c < ' ' || c > '~' ? '?' : c;
  return out;
}

}  // namespace

bool parse_number(const std::string& text, unsigned least, unsigned most, unsigned& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && number >= least && number <= most && (text.front() != '0' || text == "0");
}

bool parse_conf(const std::string& text, Conf& conf, std::string& reason) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (end == std::string::npos || !parse_line(line, conf)) {
      reason = "a line is not understood, or there twice: " + printable(line);
      return false;
    }
    at = end + 1;
  }
  if (conf.cid == 0) reason = "it has no line with the CID";
  return conf.cid != 0;
}

std::string format_conf(const Conf& conf) {
  std::string text = "cid " + std::to_string(conf.cid) + '\n';
  for (const auto& [port, host] : conf.upstreams) text += "upstream " + std::to_string(port) + ' ' + host + '\n';
  for (const ListenLine& line : conf.listens) text += "listen " + line.text() + ' ' + std::to_string(line.port) + '\n';
  return text;
}

bool read_conf(const std::string& folder, const std::string& name, Conf& conf, std::string& reason) {
  const Fd file(open((folder + "/" + name + kSuffix).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(kMaxConf + 1, '\0');
  size_t size = 0;
  while (file && size < text.size()) {
    const ssize_t count = read(file.get(), text.data() + size, text.size() - size);
    if (count == 0) {
      text.resize(size);
      return parse_conf(text, conf, reason);
    }
    if (count < 0 && errno != EINTR) break;
    if (count > 0) size += static_cast<size_t>(count);
  }
  reason = size > kMaxConf ? "it is too long" : std::string("it can't be read: ") + strerror(errno);
  return false;
}

bool list_confs(const std::string& folder, std::vector<std::string>& names) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  if (!opened) return false;
  errno = 0;
  while (const dirent* entry = readdir(opened.get())) {
    const std::string file = entry->d_name;
    if (!file.ends_with(kSuffix)) continue;
    const std::string name = file.substr(0, file.size() - strlen(kSuffix));
    if (is_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return errno == 0;
}

}  // namespace enclave
