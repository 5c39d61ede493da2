#include "text/merge_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "tensor/error.h"
#include "text/display.h"
#include "text/encoder.h"

namespace regard {

PieceIndex ids_of_pieces(const TokenizerSpec& spec) {
  PieceIndex ids(spec.pieces.size());
  for (const bool special : {true, false})
    for (std::size_t id = 0; id < spec.pieces.size(); ++id)
      if (is_special_type(type_of(spec, id)) == special && !spec.pieces[id].empty())
        ids.set(spec.pieces, static_cast<std::int32_t>(id));
  return ids;
}

MergeTable::MergeTable(const TokenizerSpec& spec, const PieceIndex& ids) {
  std::size_t size = 16;
  while (size < 2 * std::max(spec.merges.size(), spec.ranked.size())) size *= 2;
  slots_.resize(size);
  mask_ = size - 1;
  maybe_.resize(size / 16);  // four bits for each slot
  maybe_mask_ = maybe_.size() - 1;
  const auto pieces = static_cast<std::int32_t>(spec.pieces.size());
  for (std::size_t rank = 0; rank < spec.ranked.size(); ++rank) {
    const PieceMerge& merge = spec.ranked[rank];
    for (const std::int32_t id : {merge.left, merge.right, merge.merged})
      if (id < 0 || id >= pieces)
        throw Error(ErrorCode::bad_input,
                    fmt::format("merge {} of the tokenizer names the piece {}, but there are {}", rank, id, pieces));
    insert(merge.left, merge.right, {static_cast<std::uint32_t>(rank), merge.merged}, true);
  }
  for (std::size_t rank = 0; rank < spec.merges.size() && spec.ranked.empty(); ++rank) {
    const std::string_view merge = spec.merges[rank];
    const auto fail = [&](std::string_view why) {
      throw Error(ErrorCode::bad_input, fmt::format("merge {} '{}' of the tokenizer: {}", rank, display(merge), why));
    };
    const std::size_t gap = merge.find(' ', 1);  // a piece is not empty, so the first byte is no separator
    if (gap == std::string_view::npos || gap + 1 == merge.size()) fail("not two pieces with a space between them");
    const std::string_view left = merge.substr(0, gap), right = merge.substr(gap + 1);
    const auto id = [&](std::string_view piece) {
      const auto found = ids.find(spec.pieces, piece);
      if (!found) fail(fmt::format("'{}' is not in the vocabulary", display(piece)));
      return *found;
    };
    const std::int32_t merged = id(std::string(left).append(right));
    insert(id(left), id(right), {static_cast<std::uint32_t>(rank), merged}, false);
  }
}

void MergeTable::insert(std::int32_t left, std::int32_t right, Merge merge, bool last_counts) {
  const std::uint64_t mixed = mix(key(left, right));
  maybe_[mixed >> 6 & maybe_mask_] |= std::uint64_t{1} << (mixed & 63);
  Slot& slot = slots_[place(key(left, right))];
  if (slot.key == kEmpty || last_counts) slot = {key(left, right), merge};
}

}  // namespace regard
