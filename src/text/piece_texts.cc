#include "text/piece_texts.h"

#include "text/byte_alphabet.h"
#include "text/byte_pieces.h"
#include "text/encoder.h"

namespace regard {
namespace {

std::string with_spaces(std::string_view piece, std::string_view space) {
  if (space.empty()) return std::string(piece);
  std::string text;
  for (std::size_t at = 0;;) {
    const std::size_t found = piece.find(space, at);
    text += piece.substr(at, found - at);
    if (found == std::string_view::npos) return text;
    text += ' ';
    at = found + space.size();
  }
}

}  // namespace

PieceTexts::PieceTexts(const TokenizerSpec& spec, const Stages& stages) {
  const Spelling& spelling = stages.spelling;
  begins_.reserve(spec.pieces.size() + 1);
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    begins_.push_back(static_cast<std::uint32_t>(texts_.size()));
    std::string_view piece = spec.pieces[id];
    const TokenType type = type_of(spec, id);
    bool goes_on = false;
    if (is_special_type(type)) {
      texts_ += piece;
    } else if (spelling.byte_level) {
      texts_ +=
          type == TokenType::user_defined ? std::string(piece) : bytes_of_letters(piece).value_or(std::string(piece));
    } else if (type == TokenType::byte) {
      texts_ += static_cast<char>(named_byte(piece));
    } else {
      if (spelling.word_marks && !stages.continuing.empty() && piece.starts_with(stages.continuing) &&
          type != TokenType::user_defined) {
        piece.remove_prefix(stages.continuing.size());
        goes_on = true;
      }
      if (!stages.word_end.empty() && piece.ends_with(stages.word_end) && type != TokenType::user_defined) {
        texts_ += piece.substr(0, piece.size() - stages.word_end.size());
        texts_ += ' ';
      } else {
        texts_ += with_spaces(piece, spelling.space);
      }
    }
    if (spelling.word_marks) goes_on_.push_back(goes_on);
  }
  begins_.push_back(static_cast<std::uint32_t>(texts_.size()));
}

std::string PieceTexts::join(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (!goes_on_.empty() && !text.empty() && !goes_on_[static_cast<std::size_t>(id)]) text += ' ';
    text += of(id);
  }
  return text;
}

}  // namespace regard
