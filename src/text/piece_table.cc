#include "text/piece_table.h"

#include <algorithm>

namespace regard {
namespace {

constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15u;

}  // namespace

StretchHashes::StretchHashes(std::size_t longest) : power_(longest + 1) {
  power_[0] = 1;
  for (std::size_t i = 1; i <= longest; ++i) power_[i] = power_[i - 1] * kBase;
}

void StretchHashes::read(std::string_view text) {
  prefix_.resize(text.size() + 1);
  prefix_[0] = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    prefix_[i + 1] = prefix_[i] * kBase + static_cast<std::uint8_t>(text[i]) + 1;
}

PieceTable::PieceTable(const std::vector<std::string_view>& texts, const std::vector<std::int32_t>& ids)
    : texts_(texts) {
  for (const std::string_view text : texts) longest_ = std::max(longest_, text.size());
  std::size_t size = 16;
  while (size < 2 * texts.size()) size *= 2;
  slots_.resize(size);
  StretchHashes hashes(longest_);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    hashes.read(texts[i]);
    const std::uint64_t hash = hashes.of(0, texts[i].size());
    slots_[place(hash, texts[i])] = {hash, ids[i], static_cast<std::uint32_t>(i)};
  }
}

std::size_t PieceTable::place(std::uint64_t hash, std::string_view text) const {
  std::uint64_t mixed = hash * 0xD6E8FEB86659FD93u;
  mixed ^= mixed >> 32;
  std::size_t at = mixed & (slots_.size() - 1);
  while (slots_[at].id >= 0 && (slots_[at].hash != hash || texts_[slots_[at].text] != text))
    at = (at + 1) & (slots_.size() - 1);
  return at;
}

std::optional<std::int32_t> PieceTable::find(std::uint64_t hash, std::string_view text) const {
  const Slot& slot = slots_[place(hash, text)];
  if (slot.id < 0) return std::nullopt;
  return slot.id;
}

}  // namespace regard
