#pragma once
// An edit of an encoder-decoder: which of its three attentions, or the layers round it, it is about.
//
//   ACTION SITE [attention=encoder|decoder|cross] [key=value ...]
//
// encoder: the source, read by itself: rows and keys are positions of the source. decoder (where nothing is said): the
// decoder's text, read by itself. cross: the source, read by the decoder: rows are positions of the decoder's text,
// keys of the source; of its sites there are edge, z and attn_out (what it adds to the residual).

#include <string>
#include <string_view>

#include "intervention/edit.h"

namespace regard {

enum class Attention { encoder, decoder, cross };
inline constexpr int kAttentions = 3;
std::string_view name(Attention attention);

struct PlacedEdit {
  Attention attention = Attention::decoder;
  Edit edit;
};

// Error{usage} as parse_edit(), for an attention that there is not, and for a site that cross has not.
PlacedEdit parse_placed_edit(std::string_view text);
// One spelling for every edit that means the same; the attention is always said.
std::string to_string(const PlacedEdit& edit);

}  // namespace regard
