#pragma once
// Small pieces of text for pages.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

// " Mary" in quotes, as a person sees it; cut to `most` columns with … where it is longer.
std::string in_quotes(std::string_view bytes, int most = 24);
// `text` with spaces up to `width` columns, at its right or left.
std::string padded(std::string text, int width, bool right_aligned = false);
// 12,345,678
std::string grouped(std::int64_t number);
// "0.4 %", "92 %", "<0.1 %"
std::string percent(double share);
// "e4bda0"; "e4 bd a0" with a space between.
std::string hex(std::string_view bytes, std::string_view between = {});

// What to call each token of a text: in quotes; a part of a character with the character: "\xE4\xBD" (你).
std::vector<std::string> token_labels(std::span<const std::string> bytes);
// Whether one of these positions is called as some other position of the text is, so that a list of them must say where
// each stands.
bool need_places(std::span<const std::string> labels, std::span<const std::int64_t> positions);

}  // namespace regard
