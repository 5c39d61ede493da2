#pragma once
// The model that is inside the program (models/README.md says what it is and how it was made). Its files are those of
// models/default in the source, byte by byte.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace regard {

inline constexpr std::string_view kDefaultModel = "default";
inline constexpr std::string_view kDefaultModelDescription =
    "in the program: a small decoder of sentences with planted causes, English and Chinese";
inline constexpr std::string_view kDefaultModelLicence = "Apache-2.0";
inline constexpr std::string_view kDefaultModelText = "mary and tom went to the park , and we called him";  // to try it

struct EmbeddedFile {
  std::string_view name, bytes;
};
std::span<const EmbeddedFile> default_model_files();
std::int64_t default_model_bytes();

// Where its folder is, or will be: under cache_folder(), by the checksum of the files, so that programs of different
// versions do not take each other's away. Errors: as cache_folder().
std::filesystem::path default_model_place();
bool default_model_is_there();  // every byte of it

// Its folder, so that whatever opens a model opens this one. Written when it is not there, or not as it should be; any
// number of processes may do that at once. Where no cache can be written, a temporary folder that goes with the
// process. Error{io} where that cannot be written either. No network.
std::filesystem::path default_model_folder();

}  // namespace regard
