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

}  // namespace regard
