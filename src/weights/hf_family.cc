#include "weights/hf_family.h"

#include <fmt/core.h>

#include <algorithm>
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

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  const std::size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

void choose_rows(TensorPart& part, HfRows rows, const ModelConfig& c) {
  const auto per_head = [&](std::int64_t which) {
    part.first = which * c.head_dim;
    part.block = c.head_dim;
    part.step = 3 * c.head_dim;
  };
  switch (rows) {
    case HfRows::all:
      return;
    case HfRows::q:
      return take_projection(part, Projection::q, c);
    case HfRows::k:
      return take_projection(part, Projection::k, c);
    case HfRows::v:
      return take_projection(part, Projection::v, c);
    case HfRows::head_q:
      return per_head(0);
    case HfRows::head_k:
      return per_head(1);
    case HfRows::head_v:
      return per_head(2);
    case HfRows::first_half:
      return part.take_rows(0, c.hidden);
    case HfRows::second_half:
      return part.take_rows(c.hidden, c.hidden);
    case HfRows::even:
    case HfRows::odd:
      part.first = rows == HfRows::odd ? 1 : 0;
      part.block = 1;
      part.step = 2;
  }
}

// The name of a piece, or of the piece with its suffix: then `stored` is the whole name.
struct Found {
  const HfName* name = nullptr;
  bool whole = false;
};
Found find_name(const HfFamily& family, const ModelConfig& config, const CanonicalName& canonical) {
  const std::string piece = canonical.expert.empty() ? canonical.piece : canonical.piece + ".*";
  for (const std::span<const HfName> names : {family.names, family.shared})
    for (const bool whole : {true, false})
      for (const HfName& name : names)
        if (name.canonical == (whole ? piece + canonical.suffix : piece) &&
            (name.mlp == HfMlp::any || (name.mlp == HfMlp::gated) == config.gated))
          return {&name, whole};
  return {};
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

HfHead hf_head(const JsonPlace& config) {
  const auto architectures = config.find("architectures");
  if (!architectures || !architectures->is_array() || architectures->size() == 0) return HfHead::tokens;
  const std::string_view name = architectures->at(std::size_t{0}).string();
  for (const std::string_view task : {"ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering",
                                      "ForMultipleChoice", "ForNextSentencePrediction"})
    if (name.ends_with(task)) return HfHead::other_task;
  return name.ends_with("Model") && !name.ends_with("HeadModel") && !name.ends_with("HeadsModel") ? HfHead::none
                                                                                                  : HfHead::tokens;
}

bool is_of_other_task(std::string_view tensor) {
  static constexpr std::string_view kHeads[] = {"classifier.", "pre_classifier.",      "score.",
                                                "qa_outputs.", "classification_head.", "head."};
  return std::any_of(std::begin(kHeads), std::end(kHeads),
                     [&](std::string_view head) { return tensor.starts_with(head); });
}

TensorPart hf_part(const HfFamily& family, const ModelConfig& config, std::string_view prefix,
                   std::string_view canonical) {
  const CanonicalName parts(canonical);
  const auto [name, whole] = find_name(family, config, parts);
  if (name == nullptr) return {std::string(canonical)};
  TensorPart part;
  part.tensor = name->stored.front() == '^' ? std::string(name->stored.substr(1))
                                            : std::string(prefix) + std::string(name->stored);
  part.tensor = replaced(replaced(part.tensor, "{l}", parts.layer), "{e}", parts.expert);
  if (!whole) part.tensor += parts.suffix;
  part.turned = name->turned;
  part.row = name->row;
  if (name->stacked) std::from_chars(parts.expert.data(), parts.expert.data() + parts.expert.size(), part.expert);
  choose_rows(part, name->rows, config);
  return part;
}

bool hf_ignores(const HfFamily& family, std::string_view tensor) {
  static constexpr std::string_view kBuffers[] = {
      "attn.bias",           "attn.masked_bias", "attention.bias",           "attention.masked_bias",
      "rotary_emb.inv_freq", "position_ids",     "embeddings.token_type_ids"};
  const auto ends = [&](std::string_view end) { return tensor.ends_with(end); };
  return std::any_of(std::begin(kBuffers), std::end(kBuffers), ends) ||
         std::any_of(family.ignored.begin(), family.ignored.end(), ends);
}

}  // namespace regard
