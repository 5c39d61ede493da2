#pragma once
// A file that arrives in pieces, over several runs if need be: what is there stays there.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace regard {

class PartialFile {
 public:
  // Opens what an earlier run left, or makes it. Errors of all of these: io; `variable` as in fail_to_write().
  PartialFile(const std::filesystem::path& path, std::string_view variable);
  ~PartialFile();  // closes it, as it is
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  std::int64_t size() const { return size_; }
  void append(std::string_view bytes);
  void restart();  // to no bytes
  void flush();    // all of it on the disk

 private:
  std::filesystem::path path_;
  std::string variable_;
  int file_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace regard
