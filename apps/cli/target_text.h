#pragma once
// The decoder's text of an encoder-decoder.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "tensor/view.h"

namespace regard::cli {

// The start token, then `target`'s tokens, or `ids` as they are; without both, what the model makes of the encoded
// source, greedily, up to its end or `most` tokens.
std::vector<std::int32_t> target_tokens(const Model& model, View<const float, 2> encoded,
                                        const std::optional<std::string>& target, const std::optional<std::string>& ids,
                                        std::int64_t most = 64);

}  // namespace regard::cli
