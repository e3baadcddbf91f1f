// Takes lines that one enclave sends to a vsock port of the host, within bounds of its own.
#pragma once

#include <stddef.h>

#include <memory>
#include <string>
#include <vector>

#include "../init/loop.h"

namespace enclave {

struct InboxLimits {
  size_t connections = 0;
  // Whether each connection is for a single line, which its end confirms. Otherwise lines follow each other.
  bool is_single = false;
  // Of lines: as many at once, and as many a second after that.
  double burst = 0;
  double rate = 0;
  size_t line = 0;  // bytes, without the line's end
};

struct InboxCounts {
  unsigned long long accepted = 0;
  unsigned long long full = 0;  // connections that were refused, for lack of room
  unsigned long long lines = 0;
  unsigned long long fast = 0;     // lines beyond the rate
  unsigned long long invalid = 0;  // lines that are too long, or not printable
  unsigned long long unkept = 0;   // lines that could not be kept
};

class Inbox {
 public:
  // Keeps a line, without its end. Returns false if it can't.
  class Keeper {
   public:
    virtual bool keep(const std::string& line) = 0;

   protected:
    ~Keeper() = default;
  };

  Inbox(Loop& loop, const InboxLimits& limits, Keeper& keeper);
  Inbox(const Inbox&) = delete;
  ~Inbox();

  void add(Fd accepted);
  // After each round.
  void tidy();

  size_t open() const { return senders_.size(); }
  const InboxCounts& counts() const { return counts_; }

 private:
  struct Sender;

  void receive(Sender& sender);
  bool take(const std::string& line);
  bool has_allowance();
  void refuse(Sender& sender);
  void end(Sender& sender);

  Loop& loop_;
  const InboxLimits limits_;
  Keeper& keeper_;
  std::vector<std::unique_ptr<Sender>> senders_;
  InboxCounts counts_;
  double allowance_;
  long long refilled_ms_;
};

}  // namespace enclave
