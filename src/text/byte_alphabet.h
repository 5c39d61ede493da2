#pragma once
// GPT-2's alphabet: 256 printable letters, one for each byte, so that pieces can be written in a text file.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace regard {

// The letter of `byte`, in UTF-8: the byte's own character where Latin-1 prints it, else the next of U+0100, U+0101...
// (openai/gpt-2, encoder.py, bytes_to_unicode.)
const std::string& byte_letter(std::uint8_t byte);

// The bytes that `piece` is written for; nothing if it has a letter that is not of the alphabet.
std::optional<std::string> bytes_of_letters(std::string_view piece);

}  // namespace regard
