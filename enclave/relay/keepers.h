// Where the lines of an enclave go.
#pragma once

#include <string>

#include "inbox.h"

namespace enclave {

// Bounded: at 1 MB, the file is renamed to NAME.old, in place of the one before.
class FileKeeper final : public Inbox::Keeper {
 public:
  explicit FileKeeper(std::string path) : path_(std::move(path)) {}

  bool keep(const std::string& line) override;

 private:
  const std::string path_;
};

// Standard output, each line after the enclave's name. Never waits for a reader: what does not fit is dropped.
class PrintKeeper final : public Inbox::Keeper {
 public:
  explicit PrintKeeper(std::string name) : name_(std::move(name)) {}

  bool keep(const std::string& line) override;

 private:
  const std::string name_;
};

// Writes what can be written at once, as one piece. Returns false if nothing was.
bool print(int fd, const std::string& text);

}  // namespace enclave
