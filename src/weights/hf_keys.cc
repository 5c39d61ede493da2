#include "weights/hf_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/error.h"
#include "text/display.h"
#include "weights/model_config.h"

namespace regard {
namespace {

// What changes no number of a forward pass: training, generation, bookkeeping (transformers, PretrainedConfig and the
// configurations of the families), and what files on the hub say besides, which no model reads. Dropouts are told by
// their names.
constexpr std::string_view kHarmless[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_model_name_or_path",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_activation",
    "classifier_bias",
    "classifier_pooling",
    "cls_token_id",
    "custom_pipelines",
    "decoder_start_token_id",
    "deterministic_flash_attn",
    "directionality",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "emb_size",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "eoi_token_index",
    "eos_token_id",
    "eos_token_ids",
    "experts_implementation",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "flash_attn",
    "force_bos_token_to_be_generated",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "inference_rope_scaling_off",
    "init_std",
    "initial_context_length",
    "initializer_cutoff_factor",
    "initializer_factor",
    "initializer_range",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "label2id",
    "layerdrop",
    "length_penalty",
    "mask_token_id",
    "max_length",
    "max_sequence_length",
    "min_length",
    "model_max_length",
    "model_type",
    "n_special",
    "neftune_noise_alpha",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "num_steps",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "output_scores",
    "pad_token_id",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "predict_special_tokens",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "quantization_config",
    "reference_compile",
    "remove_invalid_values",
    "repad_logits_with_grad",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "router_aux_loss_coef",
    "scalable_attention",
    "sep_token_id",
    "sinusoidal_pos_embds",
    "sparse_pred_ignore_index",
    "sparse_prediction",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "tokenizer_model_max_length",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_flash_attention_2",
    "use_reentrant_checkpointing",
    "vocab_file",
    "xla_device",
};

// Switches of other families, of older or of other programs. A family that has one asks for it; for all others it is
// off, or it is refused.
constexpr std::string_view kOff[] = {
    "add_cross_attention",
    "attention_bias",
    "do_blenderbot_90_layernorm",
    "is_decoder",
    "is_encoder_decoder",
    "lm_head_bias",
    "mlp_bias",
    "qk_layer_norms",
    "qkv_bias",
    "rope_interleaved",
    "scale_embeddings",
    "tie_encoder_decoder",
    "use_mrope",
    "use_resampler",
    "use_sliding_window",
};

template <std::size_t kCount>
bool is_among(std::string_view name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// null, {}, [] and "" say nothing.
bool is_empty(const JsonPlace& value) {
  return ((value.is_array() || value.is_object()) && value.size() == 0) ||
         (value.is_string() && value.string().empty());
}

}  // namespace

std::optional<JsonPlace> HfKeys::find(std::string_view name) {
  asked_.insert(std::string(name));
  return config_.find(name);
}

std::optional<std::int64_t> HfKeys::find_extent(std::initializer_list<std::string_view> names) {
  std::optional<std::int64_t> extent;
  for (const std::string_view name : names) {
    const std::optional<JsonPlace> value = find(name);
    if (!value || extent) continue;
    extent = value->integer();
    if (*extent < 1 || *extent > kLargestExtent)
      bad(name, fmt::format("is {}; it should be 1 or more, and sane", *extent));
  }
  return extent;
}

std::int64_t HfKeys::extent(std::initializer_list<std::string_view> names) {
  const std::optional<std::int64_t> extent = find_extent(names);
  if (!extent) bad(*names.begin(), "is missing");
  return *extent;
}

std::int64_t HfKeys::layers(std::initializer_list<std::string_view> names) {
  const std::int64_t layers = extent(names);
  if (layers > tensors_) {
    const auto said = std::find_if(names.begin(), names.end(), [&](std::string_view name) { return find(name); });
    bad(*said, fmt::format("is {}, but there are only {} tensors", layers, tensors_));
  }
  return layers;
}

std::optional<std::int64_t> HfKeys::find_integer(std::string_view name) {
  const std::optional<JsonPlace> value = find(name);
  return value ? std::optional(value->integer()) : std::nullopt;
}

std::optional<double> HfKeys::find_number(std::string_view name) {
  const std::optional<JsonPlace> value = find(name);
  if (!value) return std::nullopt;
  const double number = value->number();
  if (!std::isfinite(number)) bad(name, "should be a finite number");
  return number;
}

double HfKeys::positive_or(std::string_view name, double otherwise) {
  const double number = find_number(name).value_or(otherwise);
  if (!(number > 0)) bad(name, fmt::format("is {}; it should be positive", number));
  return number;
}

float HfKeys::epsilon_or(std::string_view name, double otherwise) {
  const double number = find_number(name).value_or(otherwise);
  if (number < 0 || number > std::numeric_limits<float>::max())
    bad(name, fmt::format("is {}; it should be small, and not negative", number));
  return static_cast<float>(number);
}

float HfKeys::softcap(std::string_view name) {
  const std::optional<double> number = find_number(name);
  if (!number) return 0;
  if (!(*number >= std::numeric_limits<float>::min()) || *number > std::numeric_limits<float>::max())
    bad(name, fmt::format("is {}; it should be positive, or null", *number));
  return static_cast<float>(*number);
}

bool HfKeys::flag_or(std::string_view name, bool otherwise) {
  const std::optional<JsonPlace> value = find(name);
  return value ? value->boolean() : otherwise;
}

std::string HfKeys::string_or(std::string_view name, std::string_view otherwise) {
  const std::optional<JsonPlace> value = find(name);
  return std::string(value ? value->string() : otherwise);
}

bool HfKeys::says_null(std::string_view name) const {
  const std::vector<std::string> keys = config_.keys();
  return std::binary_search(keys.begin(), keys.end(), name) && !config_.find(name);
}

void HfKeys::refuse(std::string_view name, std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: '{}' {}", config_.file(), display(name), display(what)));
}

void HfKeys::bad(std::string_view name, std::string_view what) const {
  throw Error(ErrorCode::bad_input, fmt::format("{}: '{}' {}", config_.file(), display(name), display(what)));
}

void HfKeys::expect(std::string_view name, bool value) {
  if (flag_or(name, value) != value) refuse(name, fmt::format("is {}, which is not supported", !value));
}

void HfKeys::expect(std::string_view name, double value) {
  if (find_number(name).value_or(value) != value)
    refuse(name, fmt::format("is not {}, and nothing else is supported", value));
}

void HfKeys::refuse_unknown() const {
  for (const std::string& key : config_.keys()) {
    if (asked_.contains(key) || key.find("dropout") != std::string::npos || key.ends_with("layerdrop")) continue;
    if (is_among(key, kHarmless)) continue;
    const std::optional<JsonPlace> value = config_.find(key);  // nothing for null
    if (!value || is_empty(*value)) continue;
    if (value->is_boolean() && !value->boolean() && is_among(key, kOff)) continue;
    refuse(key, "is not understood; as it may change the result, it is not ignored");
  }
}

}  // namespace regard
