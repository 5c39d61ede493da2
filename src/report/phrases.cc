#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/phrases.h"
#include "report/shaded_text.h"
#include "text/display.h"
#include "text/utf8.h"

namespace regard {

std::string in_quotes(std::string_view bytes, int most) {
  const std::string shown = display(bytes);
  if (columns(shown) + 2 <= most) return '"' + shown + '"';
  std::string cut;
  for (std::size_t i = 0; i < shown.size();) {
    const std::size_t n = character_at(shown, i).length;
    if (columns(cut + shown.substr(i, n)) + 3 > most) break;
    cut += shown.substr(i, n);
    i += n;
  }
  return '"' + cut + "…\"";
}

std::string padded(std::string text, int width, bool right_aligned) {
  const int missing = width - columns(std::string_view(text));
  if (missing <= 0) return text;
  const std::string spaces(static_cast<std::size_t>(missing), ' ');
  return right_aligned ? spaces + text : text + spaces;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t sign = number < 0;
  for (std::size_t place = digits.size(); place > sign + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

std::string percent(double share) {
  if (std::isnan(share)) return "–";
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return fmt::format("{:.1f} %", share * 100);
}

std::string hex(std::string_view bytes, std::string_view between) {
  std::string text;
  for (const char c : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? std::string_view() : between, static_cast<unsigned char>(c));
  return text;
}

std::vector<std::string> token_labels(std::span<const std::string> bytes) {
  std::vector<std::string> labels;
  for (const TokenRange& range : whole_characters(bytes)) {
    std::string whole;
    for (std::size_t i = range.begin; i < range.end; ++i) whole += bytes[i];
    while (whole.starts_with(' ')) whole.erase(0, 1);
    for (std::size_t i = range.begin; i < range.end; ++i)
      labels.push_back(in_quotes(bytes[i]) + (range.end - range.begin > 1 ? " (" + display(whole) + ")" : ""));
  }
  return labels;
}

bool need_places(std::span<const std::string> labels, std::span<const std::int64_t> positions) {
  return std::any_of(positions.begin(), positions.end(), [&](std::int64_t at) {
    return std::count(labels.begin(), labels.end(), labels[static_cast<std::size_t>(at)]) > 1;
  });
}

}  // namespace regard
