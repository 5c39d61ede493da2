#pragma once
// The named places inside a forward pass, with the field's names (TransformerLens), so that people find their way.

#include <cstdint>
#include <string>
#include <string_view>

namespace regard {

// Values at a site are [rows, heads, channels]; heads = 1 except where said.
enum class Site {
  resid_pre,  // [rows, 1, C] the block's input
  q,
  k,
  v,  // [rows, H or G, D or E] after bias and per-head norm, before rotary
  rot_q,
  rot_k,        // [rows, H or G, D] after rotary; rot_k is what goes into the cache
  attn_scores,  // seen through readers only: after scale, softcap, mask
  pattern,      // seen through readers only: after softmax
  z,            // [rows, H, E] per head, before W_O
  result,       // [rows, H, C] per head, after W_O (made only for a tap that wants it; cannot be written)
  attn_out,     // [rows, 1, C] what attention adds to the residual
  cross_q,      // [rows, H, D] of the attention that reads the source (encoder-decoder), between attention and
  cross_z,      // [rows, H, E] feed-forward
  cross_out,    // [rows, 1, C] what it adds to the residual
  resid_mid,    // [rows, 1, C]
  mlp_post,     // [rows, 1, F] after the activation (and the gate)
  mlp_out,      // [rows, 1, C] what the feed-forward adds to the residual
  resid_post,   // [rows, 1, C] the block's output
};

std::string_view name(Site site);  // "resid_pre", "rot_q"
// "blocks.3.attn.pattern", "blocks.0.resid_pre", "blocks.7.mlp.post": the text form.
std::string full_name(Site site, std::int64_t layer);
// The other way, short or full (layer = -1 for short); Error{usage} naming the sites there are.
struct SiteName {
  Site site;
  std::int64_t layer;
};
SiteName parse_site(std::string_view text);

}  // namespace regard
