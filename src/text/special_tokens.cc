#include "text/special_tokens.h"

#include <algorithm>

namespace regard {

void SpecialTokens::add(std::string_view text, std::int32_t id) { entries_.push_back({std::string(text), id}); }

void SpecialTokens::finish() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  std::vector<Entry> unique;
  for (Entry& entry : entries_) {
    if (!unique.empty() && unique.back().text == entry.text) unique.pop_back();
    unique.push_back(std::move(entry));
  }
  entries_ = std::move(unique);
  for (const Entry& entry : entries_) first_.set(static_cast<std::uint8_t>(entry.text[0]));
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!first_.test(static_cast<std::uint8_t>(text[at]))) continue;
    if (auto match = longest_at(text, at)) return match;
  }
  return std::nullopt;
}

std::optional<SpecialTokens::Match> SpecialTokens::longest_at(std::string_view text, std::size_t at) const {
  // [low, high) are the tokens that begin like the text does so far; a token that ends here is the first of them.
  auto low = entries_.begin(), high = entries_.end();
  std::optional<Match> longest;
  for (std::size_t depth = 0; at + depth < text.size() && low != high; ++depth) {
    const auto byte = static_cast<std::uint8_t>(text[at + depth]);
    const auto key = [&](const Entry& entry) -> int {
      return depth < entry.text.size() ? static_cast<std::uint8_t>(entry.text[depth]) : -1;
    };
    low = std::partition_point(low, high, [&](const Entry& entry) { return key(entry) < byte; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return key(entry) <= byte; });
    if (low != high && low->text.size() == depth + 1) longest = Match{at, at + depth + 1, low->id};
  }
  return longest;
}

}  // namespace regard
