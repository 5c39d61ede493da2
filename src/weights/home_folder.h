#pragma once
// The person's home folder.

#include <filesystem>
#include <string_view>

namespace regard {

// $HOME, else what the system says. Error{io}, whose hint says to set `variable` instead, when neither can be told.
std::filesystem::path home_folder(std::string_view variable);

}  // namespace regard
