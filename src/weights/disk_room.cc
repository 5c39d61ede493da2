#include "weights/disk_room.h"

#include <sys/statvfs.h>

#include <string>

#include "tensor/error.h"
#include "weights/catalogue.h"

namespace regard {

void need_room(const std::filesystem::path& folder, std::int64_t bytes, std::string_view what, std::string_view hint) {
  struct statvfs disk;
  if (statvfs(folder.c_str(), &disk) != 0) return;
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (static_cast<double>(bytes) <= free) return;
  throw Error(ErrorCode::io,
              fmt::format("the disk of {} is too full: {} takes {}, and {} are free", folder.string(), what,
                          human_bytes(bytes), human_bytes(static_cast<std::int64_t>(free))),
              std::string(hint));
}

}  // namespace regard
