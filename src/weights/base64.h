#pragma once
// Base64 (RFC 4648, section 4).

#include <optional>
#include <string>
#include <string_view>

namespace regard {

// The bytes that `text` stands for; nothing if it is not valid: another character, a wrong length.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace regard
