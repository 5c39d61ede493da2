#pragma once
// What the pieces of a vocabulary stand for, as bytes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"

namespace regard {

class PieceTexts {
 public:
  // Special pieces stand for themselves; what is added and read as written too, unless spaces are written otherwise.
  PieceTexts(const TokenizerSpec& spec, const Stages& stages);
  std::string_view of(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(texts_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }
  // One after the other; where pieces say whether they begin a word, with spaces between words.
  std::string join(std::span<const std::int32_t> ids) const;

 private:
  std::string texts_;                  // of all pieces, one after the other
  std::vector<std::uint32_t> begins_;  // [V + 1] where each begins in texts_
  std::vector<bool> goes_on_;          // [V] it continues a word; empty: the pieces do not say
};

}  // namespace regard
