#pragma once
// A folder for files that nobody needs afterwards.

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace regard {

// A new folder of a name that nobody else has; nothing, and the reason, where none can be made.
std::optional<std::filesystem::path> new_folder(const std::filesystem::path& beside, std::error_code& error);

// Removed with everything in it when it goes.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::filesystem::path made) : path_(std::move(made)) {}
  // Among the system's temporary files, its name beginning with `name`. Error{io}.
  static TemporaryFolder of(const char* name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace regard
