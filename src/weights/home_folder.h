#pragma once
// The person's home folder, and where in it models are kept.

#include <filesystem>
#include <string_view>

namespace regard {

// $HOME, else what the system says. Error{io}, whose hint says to set `variable` instead, when neither can be told.
std::filesystem::path home_folder(std::string_view variable);

// $REGARD_HOME, else $XDG_CACHE_HOME/regard (an absolute path, as the XDG rules ask), else ~/.cache/regard. Creates
// nothing. Error{io} when none of them can be told.
std::filesystem::path cache_folder();

}  // namespace regard
