// Figures of the relay over HTTP, on loopback, in the text format of OpenMetrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../init/loop.h"

namespace enclave {

class Relay;

// The text of an answer.
class MetricsText {
 public:
  void family(const std::string& name, const char* type, const char* help);
  void sample(const std::string& name, const std::string& labels, unsigned long long value);
  std::string end() { return std::move(text_) + "# EOF\n"; }

 private:
  std::string text_;
};

// Names of enclaves need no escapes.
std::string label(const std::string& enclave, const std::string& name = "", const std::string& value = "",
                  const std::string& other_name = "", const std::string& other_value = "");

class Metrics final : Watcher {
 public:
  Metrics(Loop& loop, Fd listener, const Relay& relay);
  ~Metrics();

  // After each round.
  void serve();

 private:
  struct Reader;

  void handle(uint32_t events) override;
  void answer(Reader& reader);

  Loop& loop_;
  Fd listener_;
  uint32_t watched_ = 0;
  bool arrived_ = false;
  const Relay& relay_;
  std::vector<std::unique_ptr<Reader>> readers_;
};

}  // namespace enclave
