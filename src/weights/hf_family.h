#pragma once
// The families of Hugging Face folders as data: how a config.json becomes a ModelConfig, and where each canonical
// tensor (expected_tensors.h) lies.

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weights/assembly.h"
#include "weights/hf_keys.h"
#include "weights/model_config.h"

namespace regard {

// Which rows of a stored tensor: all; one of q, k, v one after the other; of [H, (q k v), D] (GPT-NeoX); one of two
// halves; every other one.
enum class HfRows { all, q, k, v, head_q, head_k, head_v, first_half, second_half, even, odd };

// Whether a name is meant for feed-forwards with a gate, for those without, or for both.
enum class HfMlp { any, gated, plain };

// `canonical`: "token_embd", or of a layer "attn_q", or "ffn_up.*" of an expert; with ".weight" or ".bias" where
// `stored` is the whole name. `stored`: with {l} and {e} for layer and expert, behind the family's prefix unless it
// begins with a ^.
struct HfName {
  std::string_view canonical, stored;
  HfRows rows = HfRows::all;
  bool turned = false;   // stored [in, out] (Conv1D)
  bool stacked = false;  // [experts, ...]
  HfMlp mlp = HfMlp::any;
  bool row = false;  // a vector stored as [1, n]
};

struct HfFamily {
  std::string_view model_type;
  ModelConfig (*configure)(HfKeys& keys);
  std::string_view prefix;  // "model."; base models are stored without
  // Its own names, and those that it shares with others: the first that fits counts.
  std::span<const HfName> names, shared = {};
  std::string_view head = {};  // a tensor that is there if it has a head; empty: it always has
  std::span<const std::pair<std::string_view, std::string_view>> twins = {};  // (tensor, of which it is a copy)
  std::span<const std::string_view> ignored = {};  // ends of names of tensors that take no part: hf_ignores()
  bool rounds_embedding_scale = false;             // to the embedding's type (Gemma)
  std::string_view only_with = {};                 // a key that tells it from another family of the same model_type
  const HfFamily* encoder = nullptr;               // of an encoder-decoder, of which the rest is the decoder
  std::string_view untied = {};  // a head that, where it is stored, is used whatever the file says of tying
};

// Error{unsupported} naming the model_type and those there are.
const HfFamily& hf_family(const JsonPlace& config);

// What a folder holds, by the last word of its first architecture: a model that says tokens, one without a head
// ("MistralModel"), or one with the head of another task ("BertForSequenceClassification"): its body can be read, and
// a head that says tokens where it has one besides.
enum class HfHead { tokens, none, other_task };
HfHead hf_head(const JsonPlace& config);
// Of another task's head.
bool is_of_other_task(std::string_view tensor);

// Where a canonical tensor of that family is. `prefix`: as this folder has it.
TensorPart hf_part(const HfFamily& family, const ModelConfig& config, std::string_view prefix,
                   std::string_view canonical);

// Tensors that take no part in what regard computes: masks and buffers that older files hold, and the family's own.
bool hf_ignores(const HfFamily& family, std::string_view tensor);

// The families, by file.
std::span<const HfFamily> hf_llama_families();
std::span<const HfFamily> hf_gpt_families();
std::span<const HfFamily> hf_encoder_families();
std::span<const HfFamily> hf_encoder_decoder_families();

}  // namespace regard
