#include "weights/piece_list.h"

#include <fmt/core.h>

#include "tensor/error.h"
#include "weights/gguf.h"

namespace regard {
namespace {

constexpr std::size_t kMostLeftOut = 65536;

}  // namespace

void PieceList::add(std::string_view piece, std::int64_t id, TokenType type) {
  if (id < 0 || static_cast<std::uint64_t>(id) >= expected_ + kMostLeftOut)
    throw Error(ErrorCode::bad_input, fmt::format("{}: the piece {} has the id {}, but there are about {} pieces",
                                                  file_, in_quotes(piece), id, expected_));
  const auto at = static_cast<std::size_t>(id);
  if (at >= pieces_.size()) pad(at + 1);
  if (types_[at] != TokenType::unused && pieces_[at] != piece)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: {} and {} both have the id {}", file_, in_quotes(pieces_[at]), in_quotes(piece), id));
  pieces_[at] = piece;
  types_[at] = type;
  ids_[pieces_[at]] = static_cast<std::int32_t>(id);
}

std::optional<std::int32_t> PieceList::find(std::string_view piece) const {
  const auto found = ids_.find(std::string(piece));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void PieceList::pad(std::size_t size) {
  if (size <= pieces_.size()) return;
  pieces_.resize(size);
  types_.resize(size, TokenType::unused);
}

void PieceList::move_to(TokenizerSpec& spec) {
  spec.pieces = std::move(pieces_);
  spec.types = std::move(types_);
}

}  // namespace regard
