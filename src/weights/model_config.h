#pragma once
// A model family as data: everything in which transformers differ, so that one forward pass runs them all.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/activation.h"
#include "kernels/rotary.h"

namespace regard {

enum class NormKind { rms, layer };

// Where the norm n of a branch f stands: x + f(n(x)); x + n'(f(n(x))) (Gemma); n(x + f(x)) (BERT, Marian).
enum class NormPlace { before, around, after };

// A feed-forward made of several, of which each row takes a few (Shazeer et al. 2017, arXiv 1701.06538).
struct Mixture {
  std::int64_t experts = 0, used = 0;  // 0 experts: none
  std::int64_t hidden = 0;             // F of one expert
  // The weights of the experts a row takes: softmax over all of them, made to sum to 1 again or not (Qwen3); or softmax
  // over those taken only (gpt-oss), which is the same as the first with `renormalise`.
  bool renormalise = true;
  std::vector<bool> layers;  // per layer: a mixture, or one feed-forward as elsewhere

  bool at(std::int64_t layer) const { return experts > 0 && layers[static_cast<std::size_t>(layer)]; }
};

// Whether the linear layers of a kind have a bias: must, must not, or as the file has it.
enum class Bias { maybe, yes, no };

// Of any extent: products of two cannot wrap.
inline constexpr std::int64_t kLargestExtent = 1 << 30;

struct ModelConfig {
  std::string family;                                  // "llama", "gemma3"...: the GGUF architecture or the model_type
  std::string name;                                    // what the file calls itself; may be empty
  std::int64_t layers = 0, heads = 0, kv_heads = 0;    // L, H, G
  std::int64_t head_dim = 0, value_dim = 0;            // D, E
  std::int64_t width = 0, hidden = 0, vocabulary = 0;  // C, F, V
  std::int64_t context = 0;                            // longest text it was made for; 0: any

  // What the first block reads.
  std::int64_t embedding_width = 0;  // of a row of the embedding; != C: a projection follows (OPT-350M)
  float embedding_scale = 1;
  bool position_table = false;       // a row per position is added, learned or sinusoidal
  bool sinusoidal = false;           // that table is not stored but made (Vaswani et al. 2017, section 3.5)
  std::int64_t position_offset = 0;  // position p has row p + offset (OPT, RoBERTa: 2)
  std::int64_t token_types = 0;      // rows of that table; that of type 0 is added: texts are single segments
  bool embedding_norm = false;

  NormKind norm = NormKind::rms;
  NormPlace norm_place = NormPlace::before;
  float norm_epsilon = 1e-5f;
  bool norm_weight_plus_one = false;  // multiply by 1 + w (checkpoints that store w alone)
  bool parallel_branches = false;     // attention and feed-forward both read the block's input (GPT-NeoX)
  bool query_key_norm = false;        // an RMSNorm per head on q and k, before rotary
  bool final_norm = true;
  Bias query_bias = Bias::maybe, output_bias = Bias::maybe, mlp_bias = Bias::maybe;  // of q, k, v; of o; of the rest
  Bias norm_bias = Bias::maybe;

  Activation activation = Activation::silu;
  bool gated = true;  // f(gate) * up, else f(up)
  Mixture mixture;

  bool causal = true;  // else every row reads the whole text
  bool rotary = true;
  RotaryConfig rotary_global;
  RotaryConfig rotary_local;         // for layers with a window, where a family has two bases; else same as global
  std::vector<std::int64_t> window;  // per layer; 0 = no window. W keys, self included; not causal: |key - row| < W
  float attention_scale = 0;         // set by the loader, always (1 / sqrt(D) unless the family says otherwise)
  bool scale_by_layer = false;       // layer l divides it by l + 1 (a GPT-2 flag)
  float attention_softcap = 0, logit_softcap = 0;
  bool sinks = false;                  // a logit per head that takes its share of every softmax (gpt-oss)
  std::int64_t relative_buckets = 0;   // > 0: a bias by the distance of key and row, shared by all layers (T5)
  std::int64_t relative_distance = 0;  // from which on all distances share a bucket

  bool cross_attention =
      false;  // between attention and feed-forward, every row reads the whole source (encoder-decoder)
  std::int32_t decoder_start = -1;  // the token that a target text begins with

  bool tied_head = false;       // logits use the embedding
  bool head = true;             // it can say logits at all
  float head_scale = 1;         // of what they are made from (T5)
  bool head_transform = false;  // before them: a linear layer, the activation, a norm (BERT's masked-token head)
  Activation head_activation = Activation::gelu_erf;
  Bias head_bias = Bias::maybe;
};

}  // namespace regard
