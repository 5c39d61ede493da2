#pragma once
// The name that git gives to a file's contents: what a hub lists for files that are not in its large-file storage.

#include <filesystem>
#include <string>

namespace regard {

// SHA-1 of "blob <size>\0" and the bytes; 40 letters, lower case. The file is held in memory: meant for small ones.
// Errors: not_found, io.
std::string git_blob_sha1_of_file(const std::filesystem::path& path);

}  // namespace regard
