#pragma once
// Whether there is room for what is going to be written.

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace regard {

// Error{io} "the disk of FOLDER is too full: WHAT takes 5.0 GB, and 2.1 GB are free" when fewer than `bytes` are free
// there. Where the system cannot tell, nothing: a write will.
void need_room(const std::filesystem::path& folder, std::int64_t bytes, std::string_view what, std::string_view hint);

}  // namespace regard
