#pragma once
// A vocabulary under construction: pieces come in any order, each with its id.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "text/tokenizer_spec.h"

namespace regard {

class PieceList {
 public:
  // `file` is what errors call it. Ids may leave out a few, not many more than there are pieces.
  PieceList(std::string file, std::size_t expected) : file_(std::move(file)), expected_(expected) {
    ids_.reserve(expected);
  }

  // Error{bad_input}: an id that is out of proportion, or taken by a piece that is written otherwise.
  void add(std::string_view piece, std::int64_t id, TokenType type = TokenType::normal);
  void set_type(std::int32_t id, TokenType type) { types_[static_cast<std::size_t>(id)] = type; }
  TokenType type(std::int32_t id) const { return types_[static_cast<std::size_t>(id)]; }
  std::optional<std::int32_t> find(std::string_view piece) const;
  std::size_t size() const { return pieces_.size(); }
  // Up to `size` ids, the further ones without a piece.
  void pad(std::size_t size);

  // Hands everything over to `spec`.
  void move_to(TokenizerSpec& spec);

 private:
  std::string file_;
  std::size_t expected_;
  std::vector<std::string> pieces_;
  std::vector<TokenType> types_;  // `unused` where there is no piece
  std::unordered_map<std::string, std::int32_t> ids_;
};

}  // namespace regard
