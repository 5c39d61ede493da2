#pragma once
// The model that is inside the program (models/README.md says what it is and how it was made). Its files are those of
// models/default in the source, byte by byte.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace regard {

inline constexpr std::string_view kDefaultModel = "default";

struct EmbeddedFile {
  std::string_view name, bytes;
};
std::span<const EmbeddedFile> default_model_files();

inline constexpr std::string_view kDefaultModelDescription =
    "in the program: a small decoder of sentences with planted causes, English and Chinese";
inline constexpr std::string_view kDefaultModelLicence = "Apache-2.0";
std::int64_t default_model_bytes();

// Where its folder is, or will be.
std::filesystem::path default_model_place();
// Its folder, under cache_folder(), so that whatever opens a model opens this one; written when it is not there, or not
// as it should be. No network. Error{io} where nothing can be written.
std::filesystem::path default_model_folder();

}  // namespace regard
