// What a Hugging Face folder may say wrongly. Each kind is refused by name, before anything is made that the files do
// not justify. (That right folders give the right numbers: tests/model/families_test.cc, hf_folders_test.cc.)
//
// Faults that others have reported of running models, and the tests that would show each here:
// - Gemma's RMSNorm, 1 + w, GELU, scale (transformers #29402, CTranslate2 #1658): Families.EverySite of gemma2, gemma3
// - the scale on a tied head too (tensai #248): the same
// - rope_scaling ignored, or used in windowed layers (mlx-vlm #1709): Families.EverySite of gemma3, llama_linear
// - llama3 scaling read as linear, wrong factors (TransformerLens #910): the same of llama_llama3; RotaryPositions here
// - windows off by one (mlx-lm #390, vllm #3385): the same of mistral, gpt_neo, gpt_oss
// - shifted contexts (llama.cpp #12357, #3825, #2060): not offered; Passes.RefusesMoreThanTheContext
// - dynamic NTK and cached keys (transformers #25104): HfFolders.DynamicNtkIsOfThePlannedLength
// - scores that overflow f16 (llama.cpp #7805): Families.EverySite of qwen2; scores are f32
// - one at a time is not many at once (llama.cpp #4479): Families.SameBits, Bits.OneByOne
// - neighbours in a batch matter (SGLang #25790): Bits.BesideTwoOtherSequences
// - types promoted in silence (mlx-lm #1491): HfFolders.EveryPlainType
// - an untied head that is missing (transformers #43159): Tensors here
// - interleaved and half rotary pairs (transformers #25199): Families.EverySite of minimind_1 and llama
// - another pre-tokenizer (llama.cpp #11054): HostileSpec.*, GgufTokenizer.*, FolderTokenizer.*
// - sinks ignored, hidden by sinks of zero (TransformerEngine #2541): HfFolders.SinksTakePart
// - exact GELU for gelu_new (nntile #370), Conv1D not turned (mlxcel #833): Families.EverySite of gpt2

#include "weights/hf_checkpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kernels/dequantize.h"
#include "support/errors.h"
#include "support/hf_folder.h"

namespace {

// The largest piece of memory asked for since it was set to 0.
std::atomic<std::size_t> largest{0};

}  // namespace

// In the whole program: every form that `delete` below may be given.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (size > largest) largest = size;
  return std::malloc(size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace regard {
namespace {

using testing::expect_error;
using testing::f32_tensor;
using testing::HfFolder;
using Json = nlohmann::json;
constexpr std::int64_t kHuge = 1 << 30;

class HfCheckpoint : public ::testing::Test {
 protected:
  Checkpoint load(const HfFolder& made) {
    made.write(folder.path());
    largest = 0;
    return load_hf_checkpoint(folder.path());
  }
  template <class Change>
  Checkpoint load_changed(const std::string& family, const Change& change) {
    HfFolder made(family);
    change(made);
    return load(made);
  }
  // Refused with these words, at the cost of no more memory than a few times the folder's.
  template <class Change>
  void refuses(const std::string& family, ErrorCode code, const std::vector<std::string>& words, const Change& change) {
    SCOPED_TRACE(family + ": " + (words.empty() ? "" : words.front()));
    HfFolder made(family);
    change(made);
    made.write(folder.path());
    largest = 0;
    expect_error(code, words, [&] { load_hf_checkpoint(folder.path()); });
    EXPECT_LT(largest, 1u << 20);
  }
  // Refused with the member set to this.
  void refuses_value(const std::string& family, ErrorCode code, const std::string& member, const Json& value,
                     std::vector<std::string> words = {}) {
    if (words.empty()) words = {"'" + member + "'"};
    SCOPED_TRACE(value.dump());
    refuses(family, code, words, [&](HfFolder& f) { f.config[member] = value; });
  }
  const testing::TempFolder folder;
};

constexpr ErrorCode kBad = ErrorCode::bad_input, kUnsupported = ErrorCode::unsupported;

TEST_F(HfCheckpoint, KeysThatAreNotUnderstood) {
  refuses_value("llama", kUnsupported, "rope_wobble", 3);
  refuses_value("llama", kUnsupported, "sliding_window", 8);  // of another family
  refuses_value("bert", kUnsupported, "is_decoder", true);
  refuses_value("bert", kUnsupported, "position_embedding_type", "relative_key");
  refuses_value("llama", kUnsupported, "hidden_act", "wobble", {"'hidden_act'", "wobble"});
  refuses_value("llama", kUnsupported, "model_type", "wobble", {"wobble"});
  refuses("llama", kBad, {"model_type"}, [](HfFolder& f) { f.config.erase("model_type"); });
  // What a file says is shown, not obeyed: one line, no escape sequences.
  refuses_value("llama", kUnsupported, "a\nb\x1b", 3, {"'a\\nb\\x1B'"});
  refuses_value("llama", kUnsupported, "hidden_act", "a\nb", {"a\\nb"});
  refuses_value("llama", kUnsupported, "model_type", "a\nb", {"a\\nb"});
  refuses_value("llama", kUnsupported, "rope_parameters", {{"rope_type", "a\nb"}, {"factor", 2}}, {"a\\nb"});
  EXPECT_NO_THROW(load_changed("llama", [](HfFolder& f) { f.config["rope_wobble"] = nullptr; }));
  EXPECT_NO_THROW(load_changed("llama", [](HfFolder& f) { f.config["attention_dropout"] = 0.5; }));
}

// What files on the hub say besides, that no model reads: each with the values that real ones have.
TEST_F(HfCheckpoint, KeysOfRealFilesThatSayNothing) {
  const std::pair<const char*, const char*> kSaid[] = {
      {"qwen2", R"({"use_mrope": false, "attention_bias": false})"},
      {"llama", R"({"is_llama_config": true, "rope_interleaved": false, "unsloth_fixed": true,
                    "unsloth_version": "2025.12.5", "max_sequence_length": 2048, "activation": "swiglu",
                    "_model_name_or_path": "a", "is_causal": true, "neftune_noise_alpha": 0.0, "is_decoder": false,
                    "qk_layer_norms": false, "use_resampler": false, "use_reentrant_checkpointing": false})"},
      {"distilbert", R"({"tie_weights_": true, "is_encoder_decoder": false, "num_labels": 2})"},
      {"modernbert", R"({"layer_norm_eps": 1e-05, "mask_token_id": 4})"},
      {"gpt2", R"({"n_special": 0, "predict_special_tokens": true, "pruned_heads": {}, "xla_device": null,
                   "eos_token_ids": null, "is_decoder": false, "feed_forward_length": 96})"},
      {"bert", R"({"directionality": "bidi", "emb_size": 312, "cell": {}, "structure": [], "pre_trained": "",
                   "training": "", "hidden_act": "gelu_python"})"},
      {"phi3", R"({"mlp_bias": false, "lm_head_bias": false, "full_attn_mod": 1, "interpolate_factor": 1})"},
      {"gpt_neox", R"({"num_steps": "global_step320000", "custom_pipelines": {"a": {"impl": "b"}}})"},
      {"qwen3_moe", R"({"qkv_bias": false, "use_qk_norm": true, "shared_expert_intermediate_size": 0})"},
      {"marian", R"({"do_blenderbot_90_layernorm": false, "force_bos_token_to_be_generated": false})"},
      {"opt", R"({"learned_embeddings": true, "scale_embeddings": false})"},
      {"t5", R"({"scalable_attention": true})"},
  };
  for (const auto& [family, said] : kSaid) {
    SCOPED_TRACE(family);
    HfFolder made(family);
    const ModelConfig plain = load(made).config;
    made.config.update(Json::parse(said));
    if (made.config.contains("feed_forward_length")) made.config["feed_forward_length"] = plain.hidden;
    if (made.config.contains("rotary_pct")) made.config["partial_rotary_factor"] = made.config["rotary_pct"];
    const ModelConfig config = load(made).config;
    EXPECT_EQ(std::tie(config.layers, config.hidden, config.window, config.activation, config.causal),
              std::tie(plain.layers, plain.hidden, plain.window, plain.activation, plain.causal));
  }
}

// The same keys with values that would be another model.
TEST_F(HfCheckpoint, KeysOfRealFilesThatSaySomething) {
  refuses_value("qwen2", kUnsupported, "use_mrope", true);
  refuses_value("llama", kUnsupported, "rope_interleaved", true);
  refuses_value("llama", kUnsupported, "is_causal", false);
  refuses_value("bert", kUnsupported, "is_causal", true);
  refuses_value("llama", kUnsupported, "learned_embeddings", true);
  refuses_value("llama", kUnsupported, "activation", "gelu");
  refuses_value("distilbert", kUnsupported, "tie_weights_", false);
  refuses_value("gpt2", kUnsupported, "pruned_heads", {{"0", {1}}});
  refuses_value("gpt2", kUnsupported, "feed_forward_length", 17);
  refuses_value("phi3", kUnsupported, "mlp_bias", true);
  refuses_value("phi3", kUnsupported, "interpolate_factor", 2);
  refuses_value("gpt_neox", kUnsupported, "rope_theta", 500000);
  refuses_value("gpt_neox", kUnsupported, "partial_rotary_factor", 0.75);
  refuses_value("qwen3_moe", kUnsupported, "use_qk_norm", false);
  refuses_value("qwen3_moe", kUnsupported, "shared_expert_intermediate_size", 64);
  refuses_value("marian", kUnsupported, "do_blenderbot_90_layernorm", true);
  refuses_value("opt", kUnsupported, "scale_embeddings", true);
}

TEST_F(HfCheckpoint, RotaryPositions) {
  const auto rope = [&](ErrorCode code, const std::vector<std::string>& words, const Json& value) {
    refuses_value("llama", code, "rope_parameters", value, words);
  };
  rope(kUnsupported, {"'wobble'"}, {{"rope_type", "wobble"}, {"rope_theta", 1e4}, {"factor", 2}});
  rope(kUnsupported, {"spin"}, {{"rope_type", "default"}, {"spin", 1}});
  rope(kBad, {"factor"}, {{"rope_type", "linear"}, {"rope_theta", 1e4}});
  rope(kBad, {"factor"}, {{"rope_type", "linear"}, {"factor", -2}});
  rope(kBad, {"base"}, {{"rope_type", "default"}, {"rope_theta", 0}});
  rope(kBad, {"base"}, {{"rope_type", "default"}, {"rope_theta", -1e4}});
  rope(kBad, {"high_frequency_factor"},
       {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}});
  rope(kBad, {"short_factor"}, {{"rope_type", "longrope"}, {"short_factor", {1}}, {"long_factor", {1}}});
  rope(kUnsupported, {"odd"}, {{"full_attention", Json::object()}, {"odd", Json::object()}});
  refuses("llama", kUnsupported, {"'wobble'"}, [](HfFolder& f) {
    f.config.erase("rope_parameters");
    f.config["rope_scaling"] = {{"type", "wobble"}, {"factor", 2}};  // the older words
  });
  for (const double part : {0.0, -0.5, 1.5, 1e300}) refuses_value("llama", kBad, "partial_rotary_factor", part);
  refuses("gpt_neox", kBad, {"'rotary_pct'"}, [](HfFolder& f) {
    f.config.erase("rope_parameters");
    f.config["rotary_pct"] = 2;
  });
}

// A window of null is none, a rotary base of null that of the global layers.
TEST_F(HfCheckpoint, NullsThatHaveAMeaning) {
  const Checkpoint qwen = load_changed("qwen2", [](HfFolder& f) {
    f.config.update(Json::parse(R"({"use_sliding_window": true, "sliding_window": null, "layer_types": null})"));
  });
  EXPECT_EQ(qwen.config.window, std::vector<std::int64_t>(static_cast<std::size_t>(qwen.config.layers), 0));
  const Checkpoint modern = load_changed("modernbert", [](HfFolder& f) {
    f.config.erase("rope_parameters");
    f.config.update(Json::parse(R"({"global_rope_theta": 4321.0, "local_rope_theta": null})"));
  });
  EXPECT_EQ(modern.config.rotary_global.base, 4321);
  EXPECT_EQ(modern.config.rotary_local.base, 4321);
}

TEST_F(HfCheckpoint, LayerTypesAndWindows) {
  refuses_value("gemma3", kBad, "layer_types", {"full_attention"});
  refuses_value("gemma3", kUnsupported, "layer_types", {"full_attention", "wobble"}, {"layer_types", "'wobble'"});
  refuses_value("mistral", kBad, "sliding_window", 0);
  refuses_value("mistral", kBad, "sliding_window", -4);
  const auto types = [&](const Json& value, ErrorCode code) {
    refuses("gpt_neo", code, {"'attention_types'"}, [&](HfFolder& f) {
      f.config.erase("attention_layers");
      f.config["attention_types"] = value;
    });
  };
  types({{{"global"}, 1}}, kBad);
  types({{{"global", "local"}, kHuge}}, kBad);
  types({{Json::array(), std::int64_t{1} << 62}}, kBad);  // nothing, very often
  types({{{"global", "wobble"}, 1}}, kUnsupported);
}

TEST_F(HfCheckpoint, Tensors) {
  const std::string q = "model.layers.1.self_attn.q_proj.weight";
  refuses("llama", kBad, {q, "missing"}, [&](HfFolder& f) { f.tensors.erase(q); });
  refuses("llama", kUnsupported, {"model.layers.1.wobble"},
          [&](HfFolder& f) { f.tensors["model.layers.1.wobble"] = f.tensors[q]; });
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{16, 32}, {512}, {1, 32, 16}, {32, 16, 1}})
    refuses("llama", kBad, {q, "32 rows of 16"}, [&](HfFolder& f) { f.tensors[q].shape = shape; });
  refuses("llama", kBad, {"q_proj.bias", "missing"}, [](HfFolder& f) { f.config["attention_bias"] = true; });
  refuses("llama_bias", kUnsupported, {"_proj.bias"}, [](HfFolder& f) { f.config["attention_bias"] = false; });
  refuses("llama", kBad, {"lm_head.weight", "missing"}, [](HfFolder& f) { f.tensors.erase("lm_head.weight"); });
  refuses("llama", kUnsupported, {q, "I16"}, [&](HfFolder& f) { f.tensors[q].format = "I16"; });
  refuses("gpt_oss", kBad, {"sinks"}, [](HfFolder& f) { f.tensors.erase("model.layers.0.self_attn.sinks"); });
}

TEST_F(HfCheckpoint, Heads) {
  refuses_value("llama", kBad, "num_key_value_heads", 3);
  refuses_value("llama", kBad, "num_key_value_heads", 8);
  refuses_value("llama", kBad, "num_attention_heads", 0);
  refuses_value("llama", kBad, "head_dim", 7, {"partial_rotary_factor", "even"});
  refuses("llama", kBad, {"'num_attention_heads'", "16"}, [](HfFolder& f) {
    f.config.erase("head_dim");
    f.config["num_attention_heads"] = f.config["num_key_value_heads"] = 3;
  });
}

// A model saved without a head, or with another task's: its body is read. One that should say tokens needs its head.
TEST_F(HfCheckpoint, ModelsWithoutAHeadForTokens) {
  const auto without = [](HfFolder& f, const std::string& head) {
    std::erase_if(f.tensors, [&](const auto& tensor) { return tensor.first.starts_with(head); });
  };
  const auto named = [](HfFolder& f, const char* architecture) {
    f.config["architectures"] = {architecture};
    f.config["tie_word_embeddings"] = false;
  };
  const Checkpoint bare = load_changed("llama", [&](HfFolder& f) {
    without(f, "lm_head.");
    named(f, "LlamaModel");
  });
  EXPECT_FALSE(bare.config.head);
  const Checkpoint reward = load_changed("llama", [&](HfFolder& f) {
    without(f, "lm_head.");
    named(f, "LlamaForSequenceClassification");
    f.tensors["score.weight"] = f32_tensor({1, 2}, {1, 2});
  });
  EXPECT_FALSE(reward.config.head);
  refuses("llama", kBad, {"'lm_head.weight' is missing"}, [&](HfFolder& f) {
    without(f, "lm_head.");
    named(f, "LlamaForCausalLM");
  });
  refuses("llama", kUnsupported, {"'score.weight'"}, [&](HfFolder& f) {
    f.tensors["score.weight"] = f32_tensor({1, 2}, {1, 2});  // of a model that says tokens: what is it for?
  });
  const Checkpoint classifier = load_changed("bert", [&](HfFolder& f) {
    without(f, "cls.");
    f.config["architectures"] = {"BertForSequenceClassification"};
    f.tensors["classifier.weight"] = f32_tensor({1, 2}, {1, 2});
    f.tensors["classifier.bias"] = f32_tensor({1}, {1});
    f.tensors["bert.embeddings.token_type_ids"] = f32_tensor({1, 2}, {0, 0});  // a buffer of old files
  });
  EXPECT_FALSE(classifier.config.head);
  const Checkpoint modern = load_changed("modernbert", [&](HfFolder& f) {  // its classifier has a head.dense, too
    without(f, "decoder.");
    f.config["architectures"] = {"ModernBertForSequenceClassification"};
    f.tensors["classifier.weight"] = f32_tensor({1, 2}, {1, 2});
  });
  EXPECT_FALSE(modern.config.head);
  // A head that says tokens, where there is one besides, stays.
  for (const char* family : {"bert", "modernbert", "llama"}) {
    const Checkpoint both = load_changed(family, [&](HfFolder& f) {
      f.config["architectures"] = {"AnyForSequenceClassification"};
      f.tensors["score.weight"] = f32_tensor({1, 2}, {1, 2});
    });
    EXPECT_TRUE(both.config.head) << family;
  }
}

// T5 says the channels of a head by themselves, so heads need not divide the width (Flan-T5 small: 6 heads, 512).
TEST_F(HfCheckpoint, HeadsOfT5AreOfAnyWidth) {
  const Checkpoint checkpoint = load_changed("t5", [](HfFolder& f) {
    f.config["num_heads"] = 8;
    f.config["d_kv"] = 1;
    for (auto& [name, tensor] : f.tensors) {
      if (name.find("relative_attention_bias") == std::string::npos) continue;
      tensor.shape = {32, 8};
      tensor.bytes = tensor.bytes + tensor.bytes + tensor.bytes + tensor.bytes;
    }
  });
  EXPECT_EQ(checkpoint.config.width % checkpoint.config.heads, 4);
  EXPECT_EQ(checkpoint.config.head_dim, 1);
}

TEST_F(HfCheckpoint, SizesThatTheFilesDoNotHave) {
  for (const char* member :
       {"num_hidden_layers", "vocab_size", "hidden_size", "intermediate_size", "head_dim", "num_attention_heads"}) {
    SCOPED_TRACE(member);
    for (const std::int64_t value : {kHuge, 2 * kHuge, std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}})
      refuses("llama", kBad, {}, [&](HfFolder& f) { f.config[member] = value; });
    for (const Json& value : {Json(2.5), Json("2"), Json(1e30), Json::array({2})})
      refuses("llama", kBad, {member}, [&](HfFolder& f) { f.config[member] = value; });
  }
  for (const std::int64_t layers : {3, 100, 1 << 30})
    refuses("llama", kBad, {}, [&](HfFolder& f) { f.config["num_hidden_layers"] = layers; });
  for (const char* member : {"encoder_layers", "decoder_layers", "max_position_embeddings"})
    refuses("marian", member[0] == 'm' ? kUnsupported : kBad, {member}, [&](HfFolder& f) { f.config[member] = kHuge; });
  for (const char* member : {"num_layers", "num_decoder_layers"}) refuses_value("t5", kBad, member, kHuge);
  refuses_value("t5", kBad, "relative_attention_num_buckets", kHuge);
  refuses_value("gpt_oss", kBad, "num_local_experts", kHuge, {"router.weight", "1073741824"});
  refuses_value("qwen3_moe_raw", kBad, "num_experts", kHuge, {"gate.weight", "1073741824"});
  refuses_value("qwen3_moe_raw", kBad, "num_experts_per_tok", 5);
}

TEST_F(HfCheckpoint, PositionTables) {
  for (const std::int64_t positions : {std::int64_t{79}, std::int64_t{81}, kHuge}) {
    refuses_value("gpt2", kBad, "n_positions", positions, {"wpe.weight", std::to_string(positions)});
    refuses_value("opt", kBad, "max_position_embeddings", positions, {"embed_positions.weight"});
  }
  for (const std::int64_t padding :
       {std::int64_t{-2}, std::int64_t{79}, kHuge, std::numeric_limits<std::int64_t>::max()})
    refuses_value("roberta", kBad, "pad_token_id", padding);
}

TEST_F(HfCheckpoint, NumbersThatMakeNone) {
  refuses_value("llama", kBad, "rms_norm_eps", -1e-5);
  refuses_value("llama", kBad, "rms_norm_eps", 1e300);
  refuses_value("gpt2", kBad, "layer_norm_epsilon", -1);
  refuses_value("gemma2", kBad, "final_logit_softcapping", -30);
  refuses_value("gemma2", kBad, "attn_logit_softcapping", 0);
  refuses_value("gemma2", kBad, "query_pre_attn_scalar", 0);
  refuses_value("t5", kBad, "decoder_start_token_id", 48);
  refuses_value("t5", kBad, "decoder_start_token_id", std::int64_t{1} << 40);
  for (const char* number : {"1e999", "-1e999", "NaN", "Infinity"}) {
    HfFolder made("llama");
    made.write(folder.path());
    std::string text = made.config.dump();
    const std::size_t at = text.find("\"rms_norm_eps\":") + 15;
    text.replace(at, text.find(',', at) - at, number);
    testing::write_file(folder / "config.json", text);
    expect_error(kBad, {"config.json"}, [&] { load_hf_checkpoint(folder.path()); });
  }
}

TEST_F(HfCheckpoint, Quantisation) {
  for (const char* method : {"awq", "gptq", "bitsandbytes", ""})
    refuses("llama", kUnsupported, {"quant_method", "'" + std::string(method) + "'"}, [&](HfFolder& f) {
      f.config["quantization_config"] = {{"quant_method", method}, {"bits", 4}};
    });
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  const auto with_scale = [&](const Json& block, std::vector<std::int64_t> shape, std::size_t bytes) {
    return [=](HfFolder& f) {
      f.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", block}};
      f.tensors[q] = {"F8_E4M3", {32, 16}, std::string(512, '\x38')};
      f.tensors[q + "_scale_inv"] = {"F32", shape, std::string(bytes, '\0')};
    };
  };
  refuses("llama", kBad, {q}, with_scale({8, 8}, {2, 2}, 16));
  refuses("llama", kBad, {"weight_block_size"}, with_scale({8}, {4, 2}, 32));
  refuses("llama", kBad, {"weight_block_size"}, with_scale({0, 8}, {4, 2}, 32));
  EXPECT_NO_THROW(load_changed("llama", with_scale({8, 8}, {4, 2}, 32)));
  // No blocks at all, and rows without columns.
  const std::string experts = "model.layers.0.mlp.experts.gate_up_proj";
  refuses("gpt_oss", kBad, {experts}, [&](HfFolder& f) {
    f.tensors.erase(experts);
    f.tensors[experts + "_blocks"] = f.tensors[experts + "_scales"] = {"U8", {16}, std::string(16, '\0')};
  });
  refuses("llama", kBad, {q}, [&](HfFolder& f) { f.tensors[q] = {"F8_E4M3", {std::int64_t{1} << 60, 0}, ""}; });
}

// config.json cut at every byte, and with every byte changed: refused by name, or a model of the same tensors.
TEST_F(HfCheckpoint, ConfigurationDamagedAtEveryByte) {
  const HfFolder made("gemma3");
  const std::size_t matrices = load(made).matrices.size();
  const std::string text = made.config.dump();
  int accepted = 0;
  const auto read = [&](const std::string& bytes) {
    testing::write_file(folder / "config.json", bytes);
    const auto error = testing::error_of([&] {
      const Checkpoint checkpoint = load_hf_checkpoint(folder.path());
      EXPECT_EQ(checkpoint.matrices.size(), matrices);
      std::vector<float> row(1 << 10);
      for (const auto& [name, m] : checkpoint.matrices) dequantize(m, m.rows - 1, 0, m.cols, row.data());
      ++accepted;
    });
    if (error) {
      EXPECT_TRUE(error->code == kBad || error->code == kUnsupported) << error->message;
      EXPECT_NE(error->message.find(folder.path().string()), std::string::npos) << error->message;
      EXPECT_EQ(error->message.find('\n'), std::string::npos) << error->message;
    }
  };
  largest = 0;
  for (std::size_t n = 0; n < text.size(); ++n) read(text.substr(0, n));
  EXPECT_EQ(accepted, 0);
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const int change : {1, 255}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      read(damaged);
    }
  EXPECT_GT(accepted, 100);  // names of harmless keys, numbers that are as good
  EXPECT_LT(largest, 1u << 20);
}

}  // namespace
}  // namespace regard
