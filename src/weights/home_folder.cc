#include "weights/home_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "tensor/error.h"

namespace regard {

std::filesystem::path home_folder(std::string_view variable) {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* user = getpwuid(getuid());
  if (user != nullptr && user->pw_dir != nullptr && *user->pw_dir != '\0') return user->pw_dir;
  throw Error(ErrorCode::io, "there is no home folder to keep models in",
              fmt::format("set {} to a folder of yours", variable));
}

std::filesystem::path cache_folder() {
  // Nothing when it is unset or empty (the XDG rules treat both alike).
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string home = variable("REGARD_HOME"); !home.empty()) return std::filesystem::absolute(home);
  if (const std::filesystem::path xdg = variable("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "regard";
  return home_folder("REGARD_HOME") / ".cache" / "regard";
}

}  // namespace regard
