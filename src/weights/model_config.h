#pragma once
// A model family as data: everything in which decoders differ, so that one forward pass runs them all.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/activation.h"
#include "kernels/rotary.h"

namespace regard {

enum class NormKind { rms, layer };

struct ModelConfig {
  std::string family;                                  // "llama", "gemma3"...: the GGUF architecture or the model_type
  std::string name;                                    // what the file calls itself; may be empty
  std::int64_t layers = 0, heads = 0, kv_heads = 0;    // L, H, G
  std::int64_t head_dim = 0, value_dim = 0;            // D, E
  std::int64_t width = 0, hidden = 0, vocabulary = 0;  // C, F, V
  std::int64_t context = 0;                            // longest text it was made for

  NormKind norm = NormKind::rms;
  float norm_epsilon = 1e-5f;
  bool norm_weight_plus_one = false;  // multiply by 1 + w (checkpoints that store w alone)
  bool query_key_norm = false;        // an RMSNorm per head on q and k, before rotary
  bool post_norms = false;            // Gemma: norms after attention and after the feed-forward, before the residual

  Activation activation = Activation::silu;
  bool gated = true;  // f(gate) * up, else f(up)

  bool rotary = true;
  RotaryConfig rotary_global;
  RotaryConfig rotary_local;         // for layers with a window, where a family has two bases; else same as global
  std::vector<std::int64_t> window;  // per layer; 0 = no window. window W = W keys, self included

  float attention_scale = 0;  // set by the loader, always (1 / sqrt(D) unless the family says otherwise)
  float attention_softcap = 0, logit_softcap = 0;
  float embedding_scale = 1;
  bool tied_head = false;  // logits use the embedding
};

}  // namespace regard
