#include "training/model_folder.h"

#include <array>
#include <nlohmann/json.hpp>

#include "tensor/error.h"
#include "tensor/half.h"
#include "weights/new_file.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

namespace regard {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRecipe = "recipe";  // of the weights' metadata

Json config_json(const ModelConfig& c) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"attention_bias", false},
          {"bos_token_id", 0},
          {"dtype", "bfloat16"},
          {"eos_token_id", nullptr},
          {"head_dim", c.head_dim},
          {"hidden_act", "silu"},
          {"hidden_size", c.width},
          {"intermediate_size", c.hidden},
          {"max_position_embeddings", c.context},
          {"mlp_bias", false},
          {"model_type", "llama"},
          {"num_attention_heads", c.heads},
          {"num_hidden_layers", c.layers},
          {"num_key_value_heads", c.kv_heads},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", c.rotary_global.base},
          {"tie_word_embeddings", c.tied_head},
          {"vocab_size", c.vocabulary}};
}

Json tokenizer_json(const TokenizerSpec& spec) {
  const bool words = spec.kind == TokenizerSpec::Kind::wordpiece;
  Json vocabulary = Json::object();
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) vocabulary[spec.pieces[id]] = id;
  const Json word_model = {{"type", "WordPiece"},
                           {"unk_token", "<none>"},
                           {"continuing_subword_prefix", "##"},
                           {"max_input_chars_per_word", 100},
                           {"vocab", vocabulary}};
  Json word_cuts = {{"type", "Sequence"}, {"pretokenizers", Json::array()}};
  for (const CutStep& cut : spec.stages->cuts)
    if (words && cut.kind == CutStep::Kind::split)
      word_cuts["pretokenizers"].push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", cut.pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  word_cuts["pretokenizers"].push_back({{"type", "BertPreTokenizer"}});
  const Json byte_model = {{"type", "BPE"},
                           {"dropout", nullptr},
                           {"unk_token", nullptr},
                           {"continuing_subword_prefix", nullptr},
                           {"end_of_word_suffix", nullptr},
                           {"fuse_unk", false},
                           {"byte_fallback", false},
                           {"vocab", vocabulary},
                           {"merges", Json::array()}};
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const std::string& begin = spec.pieces.at(static_cast<std::size_t>(*spec.bos));
  const Json template_begin = {{"SpecialToken", {{"id", begin}, {"type_id", 0}}}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens",
           {{{"id", *spec.bos},
             {"content", begin},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", words ? word_cuts : bytes},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {template_begin, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair",
             {template_begin,
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
            {"special_tokens", {{begin, {{"id", begin}, {"ids", {*spec.bos}}, {"tokens", {begin}}}}}}}},
          {"decoder", words ? Json::object({{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}) : bytes},
          {"model", words ? word_model : byte_model}};
}

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight", as transformers' Llama has it.
std::string stored_name(std::string_view canonical) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNames = {
      {{"token_embd", "model.embed_tokens"},
       {"output_norm", "model.norm"},
       {"output", "lm_head"},
       {"attn_norm", "input_layernorm"},
       {"attn_q", "self_attn.q_proj"},
       {"attn_k", "self_attn.k_proj"},
       {"attn_v", "self_attn.v_proj"},
       {"attn_output", "self_attn.o_proj"},
       {"ffn_norm", "post_attention_layernorm"},
       {"ffn_gate", "mlp.gate_proj"},
       {"ffn_up", "mlp.up_proj"},
       {"ffn_down", "mlp.down_proj"}}};
  constexpr std::string_view kEnd = ".weight";
  std::string prefix;
  std::string_view rest = canonical.substr(0, canonical.size() - std::min(canonical.size(), kEnd.size()));
  if (rest.starts_with("blk.")) {
    const std::size_t dot = rest.find('.', 4);
    prefix = fmt::format("model.layers.{}.", rest.substr(4, dot - 4));
    rest.remove_prefix(dot + 1);
  }
  for (const auto& [ours, theirs] : kNames)
    if (rest == ours && canonical.ends_with(kEnd)) return prefix + std::string(theirs) + std::string(kEnd);
  throw Error(ErrorCode::unsupported, fmt::format("{} has no name in a folder of the Llama family", canonical));
}

void write_file(const std::filesystem::path& path, const std::function<void(NewFile&)>& write) {
  const std::filesystem::path beside = path.string() + ".new";
  {
    NewFile file(beside, "");
    write(file);
    file.finish();
  }
  std::filesystem::rename(beside, path);
}

}  // namespace

void write_model_folder(const std::filesystem::path& folder, const ModelConfig& config, const TokenizerSpec& tokenizer,
                        const Parameters& parameters, const std::string& recipe) {
  const bool by_bytes =
      tokenizer.kind == TokenizerSpec::Kind::byte_level_bpe && tokenizer.merges.empty() && tokenizer.ranked.empty();
  if (config.family != "llama" || !tokenizer.bos || !(by_bytes || tokenizer.kind == TokenizerSpec::Kind::wordpiece))
    throw Error(ErrorCode::unsupported,
                "a model folder is written of the Llama family with a vocabulary of words or of bytes");
  std::filesystem::create_directories(folder);
  std::vector<OutgoingTensor> tensors;
  for (const Parameters::Place& place : parameters.places()) {
    const std::span<const float> values = parameters.values().subspan(
        static_cast<std::size_t>(place.begin), static_cast<std::size_t>(place.rows * place.cols));
    std::vector<std::int64_t> shape = {place.rows, place.cols};
    if (place.vector) shape = {place.cols};
    tensors.push_back({stored_name(place.name), safetensors_type(DType::bf16), std::move(shape), 2 * std::ssize(values),
                       [values](const ByteSink& sink) {
                         std::vector<std::uint16_t> rounded;
                         for (const float value : values) rounded.push_back(bf16_from_f32(value));
                         sink(reinterpret_cast<const std::byte*>(rounded.data()), 2 * std::ssize(rounded));
                       }});
  }
  const SafetensorsWriter writer(std::move(tensors), {{"format", "pt"}, {kRecipe, recipe}});
  const auto write_text = [&](const char* name, const Json& json) {
    const std::string text = json.dump(1) + "\n";
    write_file(folder / name, [&](NewFile& file) { file.write(text.data(), text.size()); });
  };
  write_file(folder / "model.safetensors", [&](NewFile& file) {
    writer.write([&](const std::byte* data, std::int64_t bytes) { file.write(data, static_cast<std::size_t>(bytes)); },
                 "", nullptr);
  });
  write_text("config.json", config_json(config));
  write_text("tokenizer.json", tokenizer_json(tokenizer));
  sync_folder(folder);
}

std::string recipe_of(const std::filesystem::path& folder) {
  try {
    const SafetensorsFiles files = read_safetensors(folder);
    const auto found = files.metadata.find(kRecipe);
    return found == files.metadata.end() ? std::string() : found->second;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace regard
