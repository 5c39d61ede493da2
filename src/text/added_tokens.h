#pragma once
// Added tokens: where a text is cut before anything else, and again once it is normalised.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "text/normalizer.h"
#include "text/special_tokens.h"
#include "text/tokenizer_spec.h"

namespace regard {

class AddedTokens {
 public:
  // Error{bad_input}: a token that is too long.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  // Cuts `text` from its beginning to its end: `visit(begin, end, id)`, where id is -1 for what is no added token.
  // `normalized`: look for the tokens that are looked for in normalised text, else for the others. `special`: for those
  // that are special, too. (tokenizers, added_vocabulary.rs, find_matches.)
  using Visit = std::function<void(std::size_t begin, std::size_t end, std::int32_t id)>;
  void split(std::string_view text, bool normalized, bool special, const Visit& visit) const;

 private:
  std::vector<AddedToken> tokens_;
  SpecialTokens sets_[2][2];  // [normalized][special]: where each token stands in tokens_
};

}  // namespace regard
