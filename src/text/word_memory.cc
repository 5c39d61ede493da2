#include "text/word_memory.h"

#include <cstring>

namespace regard {
namespace {

constexpr std::size_t kMostEntries = 1 << 14;
constexpr std::uint32_t kLongestWord = 64;

std::uint64_t hash_of(std::string_view word) {
  std::uint64_t hash = word.size();
  while (word.size() >= 8) {
    std::uint64_t eight;
    std::memcpy(&eight, word.data(), 8);
    hash = (hash ^ eight) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
    word.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, word.data(), word.size());
  hash = (hash ^ rest) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

}  // namespace

WordMemory::WordMemory(std::string_view text, std::size_t words) : text_(text) {
  std::size_t size = 16;
  while (size < words && size < kMostEntries) size *= 2;
  entries_.resize(size);
}

bool WordMemory::recall(const Word& word, std::vector<Token>& out) {
  const std::uint32_t length = word.end - word.begin;
  if (length > kLongestWord) return false;
  const std::string_view text = text_.substr(word.begin, length);
  place_ = hash_of(text) & (entries_.size() - 1);
  const Entry& entry = entries_[place_];
  if (entry.length != length || text_.substr(entry.begin, length) != text) return false;
  const std::int64_t moved = std::int64_t{word.begin} - std::int64_t{entry.begin};
  for (std::uint32_t i = 0; i < entry.count; ++i) {
    const Token token = out[entry.first + i];
    out.push_back({token.id, token.begin + moved, token.end + moved});
  }
  return true;
}

void WordMemory::keep(const Word& word, std::size_t first, const std::vector<Token>& out) {
  const std::uint32_t length = word.end - word.begin;
  if (length > kLongestWord || out.size() > 0xFFFFFFFFu) return;
  entries_[place_] = {word.begin, length, static_cast<std::uint32_t>(first),
                      static_cast<std::uint32_t>(out.size() - first)};
}

}  // namespace regard
