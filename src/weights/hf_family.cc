#include "weights/hf_family.h"

#include <fmt/core.h>

#include <charconv>

#include "tensor/error.h"

namespace regard {
namespace {

template <class Fn>
void each_family(Fn&& fn) {
  for (const auto families :
       {hf_llama_families(), hf_gpt_families(), hf_encoder_families(), hf_encoder_decoder_families()})
    for (const HfFamily& family : families) fn(family);
}

// "blk.3.ffn_up.2.weight": layer 3, piece "ffn_up.*", expert 2, ".weight".
struct Canonical {
  std::string layer, piece, expert, suffix;
};

Canonical parts_of(std::string_view name) {
  Canonical parts;
  const std::size_t dot = name.rfind('.');
  parts.suffix = name.substr(dot);
  name = name.substr(0, dot);
  if (name.starts_with("blk.")) {
    name.remove_prefix(4);
    parts.layer = name.substr(0, name.find('.'));
    name.remove_prefix(parts.layer.size() + 1);
  }
  parts.piece = name;
  const std::size_t expert = name.find('.');
  if (expert != std::string_view::npos) {
    parts.expert = name.substr(expert + 1);
    parts.piece = std::string(name.substr(0, expert)) + ".*";
  }
  return parts;
}

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  const std::size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

void choose_rows(TensorPart& part, HfRows rows, const ModelConfig& c) {
  const std::int64_t q = c.heads * c.head_dim, k = c.kv_heads * c.head_dim, v = c.kv_heads * c.value_dim;
  const auto run = [&](std::int64_t first, std::int64_t n) {
    part.first = first;
    part.block = part.step = n;
  };
  const auto per_head = [&](std::int64_t which) {
    part.first = which * c.head_dim;
    part.block = c.head_dim;
    part.step = 3 * c.head_dim;
  };
  switch (rows) {
    case HfRows::all:
      return;
    case HfRows::q:
      return run(0, q);
    case HfRows::k:
      return run(q, k);
    case HfRows::v:
      return run(q + k, v);
    case HfRows::head_q:
      return per_head(0);
    case HfRows::head_k:
      return per_head(1);
    case HfRows::head_v:
      return per_head(2);
    case HfRows::first_half:
      return run(0, c.hidden);
    case HfRows::second_half:
      return run(c.hidden, c.hidden);
    case HfRows::even:
    case HfRows::odd:
      part.first = rows == HfRows::odd ? 1 : 0;
      part.block = 1;
      part.step = 2;
  }
}

}  // namespace

const HfFamily& hf_family(const JsonPlace& config) {
  const std::string type = config.string_or("model_type", "");
  const HfFamily* found = nullptr;
  std::string known;
  each_family([&](const HfFamily& family) {
    if (family.model_type == type && found == nullptr && (family.only_with.empty() || config.find(family.only_with)))
      found = &family;
    if (family.only_with.empty()) known += fmt::format("{}{}", known.empty() ? "" : " ", family.model_type);
  });
  if (found != nullptr) return *found;
  if (type.empty()) throw config.error("'model_type' is missing", ErrorCode::bad_input);
  throw config.error(fmt::format("the model_type '{}' is not supported", type), ErrorCode::unsupported,
                     "supported are: " + known);
}

TensorPart hf_part(const HfFamily& family, const ModelConfig& config, std::string_view prefix,
                   std::string_view canonical) {
  const Canonical parts = parts_of(canonical);
  const HfName* name = nullptr;
  bool whole = false;
  for (const HfName& candidate : family.names) {
    if (candidate.mlp != HfMlp::any && (candidate.mlp == HfMlp::gated) != config.gated) continue;
    if (candidate.canonical == parts.piece + parts.suffix) {
      name = &candidate;
      whole = true;
      break;
    }
    if (candidate.canonical == parts.piece) name = &candidate;
  }
  if (name == nullptr) return {std::string(canonical)};
  TensorPart part;
  part.tensor = name->stored.front() == '^' ? std::string(name->stored.substr(1))
                                            : std::string(prefix) + std::string(name->stored);
  part.tensor = replaced(replaced(part.tensor, "{l}", parts.layer), "{e}", parts.expert);
  if (!whole) part.tensor += parts.suffix;
  part.turned = name->turned;
  if (name->stacked) std::from_chars(parts.expert.data(), parts.expert.data() + parts.expert.size(), part.expert);
  choose_rows(part, name->rows, config);
  return part;
}

bool hf_ignores(std::string_view tensor) {
  static constexpr std::string_view kEnds[] = {"attn.bias",
                                               "attn.masked_bias",
                                               "attention.bias",
                                               "attention.masked_bias",
                                               "rotary_emb.inv_freq",
                                               "position_ids",
                                               "pooler.dense.weight",
                                               "pooler.dense.bias",
                                               "cls.seq_relationship.weight",
                                               "cls.seq_relationship.bias",
                                               "attention.mask"};
  for (const std::string_view end : kEnds)
    if (tensor.ends_with(end)) return true;
  return false;
}

}  // namespace regard
