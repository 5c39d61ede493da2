#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "support/tiny_llama.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::GgufWriter;
using testing::tiny_llama;
using testing::TinyLlama;

class CheckpointTest : public ::testing::Test {
 protected:
  Checkpoint load(const GgufWriter& w) {
    w.write(path);
    return load_checkpoint(path);
  }
  // The tiny model, changed by `spoil`, is refused with these words.
  void refuses(const std::function<void(GgufWriter&)>& spoil, std::vector<std::string> words,
               ErrorCode code = ErrorCode::bad_input) {
    GgufWriter w = tiny_llama();
    spoil(w);
    words.push_back("x.gguf: ");
    expect_error(code, words, [&] { load(w); });
  }
  ModelConfig config(const std::function<void(GgufWriter&)>& change) {
    GgufWriter w = tiny_llama();
    change(w);
    return load(w).config;
  }
  const testing::TempFolder folder;
  const std::filesystem::path path = folder / "x.gguf";
};

void set_u32(GgufWriter& w, const std::string& key, std::uint32_t value) {
  w.remove(key);
  w.u32(key, value);
}
void set_f32(GgufWriter& w, const std::string& key, float value) {
  w.remove(key);
  w.f32(key, value);
}

TEST_F(CheckpointTest, ReadsTheConfiguration) {
  const Checkpoint checkpoint = load(tiny_llama());
  const ModelConfig& c = checkpoint.config;
  EXPECT_EQ(c.family, "llama");
  EXPECT_EQ(c.name, "tiny");
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.value_dim, 16);
  EXPECT_EQ(c.width, 64);
  EXPECT_EQ(c.hidden, 96);
  EXPECT_EQ(c.vocabulary, 260);
  EXPECT_EQ(c.context, 256);
  EXPECT_EQ(c.norm, NormKind::rms);
  EXPECT_EQ(c.norm_epsilon, 1e-5f);
  EXPECT_EQ(c.activation, Activation::silu);
  EXPECT_TRUE(c.gated);
  EXPECT_TRUE(c.rotary);
  EXPECT_EQ(c.rotary_global.pairs, RotaryPairs::interleaved);
  EXPECT_EQ(c.rotary_global.dim, 16);
  EXPECT_EQ(c.rotary_global.base, 10000);
  EXPECT_EQ(c.rotary_global.scaling, RotaryScaling::none);
  EXPECT_EQ(c.window, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(c.attention_scale, 0.25f);
  EXPECT_TRUE(c.tied_head);
  EXPECT_EQ(c.embedding_scale, 1);
  EXPECT_EQ(checkpoint.files, (std::vector<std::string>{path.string()}));
  EXPECT_EQ(checkpoint.bytes, static_cast<std::int64_t>(std::filesystem::file_size(path)));
}

TEST_F(CheckpointTest, HoldsTheWeightsAsTheyAreStored) {
  for (const DType type :
       {DType::f32, DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0,
        DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4}) {
    TinyLlama t;
    t.type = type;
    t.tied = false;
    t.biases = true;
    t.rope_divisors = true;
    t.width = t.hidden = 256;
    t.head_dim = 64;
    const GgufWriter w = tiny_llama(t);
    const Checkpoint checkpoint = load(w);
    EXPECT_FALSE(checkpoint.config.tied_head);
    EXPECT_EQ(checkpoint.matrices.size(), w.tensors.size() - 1);  // all but the divisors
    std::int64_t stored = 0;
    for (const GgufWriter::Tensor& tensor : w.tensors) {
      stored += static_cast<std::int64_t>(tensor.data.size());
      if (tensor.name == "rope_freqs.weight") continue;
      const Matrix& m = checkpoint.matrix(tensor.name);
      EXPECT_EQ(m.cols, static_cast<std::int64_t>(tensor.shape[0]));
      EXPECT_EQ(m.rows, tensor.shape.size() == 2 ? static_cast<std::int64_t>(tensor.shape[1]) : 1);
      EXPECT_EQ(m.row_stride, row_bytes(m.dtype, m.cols));
      EXPECT_EQ(std::memcmp(m.data, tensor.data.data(), tensor.data.size()), 0) << tensor.name;
    }
    std::int64_t counted = 0;
    for (const auto& [dtype, as] : checkpoint.stored) counted += as.bytes;
    EXPECT_EQ(counted, stored);
    EXPECT_EQ(checkpoint.matrix("blk.1.attn_q.weight").dtype, type);
    EXPECT_EQ(checkpoint.matrix("blk.1.attn_k.bias").cols, 128);
    EXPECT_EQ(checkpoint.stored.at(type).tensors, type == DType::f32 ? 36 : 14);
  }
}

TEST_F(CheckpointTest, FindsMatricesByName) {
  const Checkpoint checkpoint = load(tiny_llama());
  EXPECT_NE(checkpoint.find("output_norm.weight"), nullptr);
  EXPECT_EQ(checkpoint.find("output.weight"), nullptr);
  expect_error(ErrorCode::not_found, {"x.gguf", "'output.weight'"}, [&] { checkpoint.matrix("output.weight"); });
}

TEST_F(CheckpointTest, WeightsOutliveTheMove) {
  Checkpoint moved;
  {
    Checkpoint checkpoint = load(tiny_llama());
    moved = std::move(checkpoint);
  }
  EXPECT_EQ(std::memcmp(moved.matrix("token_embd.weight").data, tiny_llama().tensors[0].data.data(), 64), 0);
}

TEST_F(CheckpointTest, NoticesAFileThatIsCutWhileInUse) {
  const Checkpoint checkpoint = load(tiny_llama());
  EXPECT_NO_THROW(checkpoint.check_intact());
  std::filesystem::resize_file(path, 4096);
  const Matrix& m = checkpoint.matrix("output_norm.weight");
  EXPECT_EQ(static_cast<int>(*static_cast<const volatile std::byte*>(m.data)), 0);
  expect_error(ErrorCode::io, {"x.gguf", "cut short"}, [&] { checkpoint.check_intact(); });
}

TEST_F(CheckpointTest, DefaultsAreThoseOfTheFormat) {
  const ModelConfig c = config([](GgufWriter& w) {
    for (const char* key :
         {"attention.key_length", "attention.value_length", "rope.dimension_count", "rope.freq_base", "vocab_size"})
      w.remove(std::string("llama.") + key);
    w.remove("general.name");
  });
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.rotary_global.dim, 16);
  EXPECT_EQ(c.rotary_global.base, 10000);
  EXPECT_EQ(c.vocabulary, 260);
  EXPECT_EQ(c.name, "");

  TinyLlama t;
  t.kv_heads = 4;
  GgufWriter w = tiny_llama(t);
  w.remove("llama.attention.head_count_kv");
  EXPECT_EQ(load(w).config.kv_heads, 4);
}

TEST_F(CheckpointTest, ReadsRotaryScaling) {
  RotaryConfig r = config([](GgufWriter& w) {
                     w.string("llama.rope.scaling.type", "linear");
                     w.f32("llama.rope.scaling.factor", 4);
                   }).rotary_global;
  EXPECT_EQ(r.scaling, RotaryScaling::linear);
  EXPECT_EQ(r.factor, 4);

  r = config([](GgufWriter& w) { w.f32("llama.rope.scale_linear", 2); }).rotary_global;
  EXPECT_EQ(r.scaling, RotaryScaling::linear);
  EXPECT_EQ(r.factor, 2);

  r = config([](GgufWriter& w) {
        w.string("llama.rope.scaling.type", "none");
        w.f32("llama.rope.scaling.factor", 4);
      }).rotary_global;
  EXPECT_EQ(r.scaling, RotaryScaling::none);

  r = config([](GgufWriter& w) {
        w.string("llama.rope.scaling.type", "yarn");
        w.f32("llama.rope.scaling.factor", 16);
        w.u32("llama.rope.scaling.original_context_length", 128);
        w.boolean("llama.rope.scaling.finetuned", true);
      }).rotary_global;
  EXPECT_EQ(r.scaling, RotaryScaling::yarn);
  EXPECT_EQ(r.factor, 16);
  EXPECT_EQ(r.original_context, 128);
  EXPECT_EQ(r.attention_factor, 0);  // by the formula
  EXPECT_EQ(r.beta_fast, 32);

  r = config([](GgufWriter& w) {
        w.string("llama.rope.scaling.type", "yarn");
        w.f32("llama.rope.scaling.factor", 16);
        w.f32("llama.rope.scaling.attn_factor", 0.5f);
        w.f32("llama.rope.scaling.yarn_beta_fast", 24);
        w.f32("llama.rope.scaling.yarn_beta_slow", 2);
      }).rotary_global;
  EXPECT_EQ(r.original_context, 256);  // that of the model
  EXPECT_DOUBLE_EQ(r.attention_factor, 0.5 * (0.1 * std::log(16.0) + 1));
  EXPECT_EQ(r.beta_fast, 24);
  EXPECT_EQ(r.beta_slow, 2);

  TinyLlama t;
  t.rope_divisors = true;
  r = load(tiny_llama(t)).config.rotary_global;
  EXPECT_EQ(r.frequency_divisors, (std::vector<double>{1, 1, 1, 1, 8, 8, 8, 8}));
}

TEST_F(CheckpointTest, ReadsTheRestThatChangesNumbers) {
  EXPECT_EQ(config([](GgufWriter& w) { w.f32("llama.attention.scale", 0.5f); }).attention_scale, 0.5f);
  EXPECT_EQ(config([](GgufWriter& w) { w.f32("llama.attention.scale", 0); }).attention_scale, 0.0f);  // 0 is a value
  EXPECT_EQ(config([](GgufWriter& w) { w.u32("llama.attention.sliding_window", 8); }).window,
            (std::vector<std::int64_t>{8, 8}));
  const ModelConfig partial = config([](GgufWriter& w) { set_u32(w, "llama.rope.dimension_count", 8); });
  EXPECT_EQ(partial.rotary_global.dim, 8);
  // lists per layer that say the same for all
  const ModelConfig lists = config([](GgufWriter& w) {
    for (const char* key : {"llama.attention.head_count", "llama.attention.head_count_kv", "llama.feed_forward_length"})
      w.remove(key);
    w.i32s("llama.attention.head_count", {4, 4});
    w.i32s("llama.attention.head_count_kv", {2, 2});
    w.i32s("llama.feed_forward_length", {96, 96});
  });
  EXPECT_EQ(lists.kv_heads, 2);
  EXPECT_EQ(lists.hidden, 96);
}

TEST_F(CheckpointTest, HarmlessKeysAreHarmless) {
  EXPECT_NO_THROW(config([](GgufWriter& w) {
    w.string("general.type", "model");
    w.string("general.basename", "anything");
    w.u32("general.file_type", 3);
    w.strings("general.tags", {"a"});
    w.u32("general.quantization_version", 2);
    w.string("quantize.imatrix.file", "x.dat");
    w.u32("llama.expert_count", 0);
    w.u32("llama.expert_used_count", 0);
    w.boolean("llama.attention.causal", true);
    w.string("llama.tensor_data_layout", "Meta AI original pth");
    w.u32("tokenizer.ggml.eot_token_id", 259);
  }));
}

TEST_F(CheckpointTest, RefusesOtherArchitecturesByName) {
  GgufWriter w = tiny_llama();
  w.remove("general.architecture");
  expect_error(ErrorCode::bad_input, {"x.gguf", "'general.architecture'", "missing"}, [&] { load(w); });
  w.string("general.architecture", "mamba");
  expect_error(ErrorCode::unsupported, {"x.gguf", "'mamba'", "not supported"}, [&] { load(w); });
  // its tokens can be had all the same
  EXPECT_EQ(load_tokenizer(path).pieces.size(), 260u);
  refuses([](GgufWriter& v) { v.string("general.type", "adapter"); }, {"'adapter'"}, ErrorCode::unsupported);
}

TEST_F(CheckpointTest, RefusesWhatItDoesNotUnderstand) {
  for (const char* key :
       {"llama.logit_scale", "llama.residual_scale", "llama.attn_logit_softcapping", "llama.rope.freq_base_swa",
        "llama.attention.clamp_kqv", "llama.use_parallel_residual", "llama.something_new"})
    refuses([&](GgufWriter& w) { w.f32(key, 1); }, {std::string("'") + key + "'", "not understood"},
            ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.u32("llama.expert_count", 8); }, {"'llama.expert_count'", "mixture of experts"},
          ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.boolean("llama.attention.causal", false); }, {"'llama.attention.causal'"},
          ErrorCode::unsupported);
  for (const char* type : {"longrope", "dynamic", "su", ""})
    if (*type != '\0')
      refuses([&](GgufWriter& w) { w.string("llama.rope.scaling.type", type); }, {"'llama.rope.scaling.type'", type},
              ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.tensor("blk.0.attn_q_norm.weight", {16}, std::vector<float>(16)); },
          {"'blk.0.attn_q_norm.weight'", "not understood"}, ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.u32("general.quantization_version", 1); }, {"'general.quantization_version'", "1"},
          ErrorCode::unsupported);
}

TEST_F(CheckpointTest, RefusesTensorTypesByName) {
  refuses(
      [](GgufWriter& w) {
        TinyLlama t;
        t.width = t.hidden = 256;
        t.head_dim = 64;
        w = tiny_llama(t);
        GgufWriter::Tensor& q = w.tensor_named("blk.1.attn_q.weight");
        q.type = 16;
        q.data = std::string(256 * 66, 'x');
      },
      {"'blk.1.attn_q.weight'", "IQ2_XXS"}, ErrorCode::unsupported);
  refuses(
      [](GgufWriter& w) {
        GgufWriter::Tensor& norm = w.tensor_named("output_norm.weight");
        norm.type = 26;
      },
      {"'output_norm.weight'", "I32"}, ErrorCode::unsupported);
}

TEST_F(CheckpointTest, RefusesShapesThatCannotBe) {
  const std::string kv = "llama.attention.head_count_kv";
  refuses([](GgufWriter& w) { set_u32(w, "llama.attention.head_count", 0); }, {"'llama.attention.head_count'", "0"});
  refuses([&](GgufWriter& w) { set_u32(w, kv, 0); }, {"'llama.attention.head_count_kv'", "0"});
  refuses([&](GgufWriter& w) { set_u32(w, kv, 3); }, {"'llama.attention.head_count_kv'", "3", "does not divide", "4"});
  refuses([&](GgufWriter& w) { set_u32(w, kv, 8); }, {"does not divide"});
  refuses(
      [&](GgufWriter& w) {
        w.remove(kv);
        w.i32s(kv, {2, 1});
      },
      {"'llama.attention.head_count_kv'", "differs"}, ErrorCode::unsupported);
  refuses(
      [&](GgufWriter& w) {
        w.remove(kv);
        w.i32s(kv, {2});
      },
      {"'llama.attention.head_count_kv'", "1 elements for 2 layers"});
  refuses(
      [&](GgufWriter& w) {
        w.remove(kv);
        w.f32s(kv, {2, 2});
      },
      {"integers"});
  refuses(
      [&](GgufWriter& w) {
        w.remove(kv);
        w.i32(kv, -2);
      },
      {"-2"});
  refuses(
      [](GgufWriter& w) {
        w.remove("llama.attention.key_length");
        set_u32(w, "llama.attention.head_count", 6);
      },
      {"'llama.attention.head_count'", "6", "width 64"});
  refuses([](GgufWriter& w) { set_u32(w, "llama.attention.key_length", 15); },
          {"'llama.attention.key_length'", "15", "even"});
  refuses([](GgufWriter& w) { set_u32(w, "llama.rope.dimension_count", 18); }, {"'llama.rope.dimension_count'", "18"});
  refuses([](GgufWriter& w) { set_u32(w, "llama.rope.dimension_count", 7); }, {"'llama.rope.dimension_count'", "even"});
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size"}) {
    const std::string full = std::string("llama.") + key;
    refuses([&](GgufWriter& w) { set_u32(w, full, 0); }, {"'" + full + "'"});
    refuses([&](GgufWriter& w) { set_u32(w, full, 0xffffffff); }, {"'" + full + "'"});
    refuses(
        [&](GgufWriter& w) {
          w.remove(full);
          w.u64(full, ~std::uint64_t{0});
        },
        {"'" + full + "'"});
    refuses(
        [&](GgufWriter& w) {
          w.remove(full);
          w.string(full, "2");
        },
        {"'" + full + "'"});
    if (full != "llama.vocab_size") refuses([&](GgufWriter& w) { w.remove(full); }, {"'" + full + "'", "missing"});
  }
  refuses([](GgufWriter& w) { set_u32(w, "llama.block_count", 1000000000); }, {"'llama.block_count'", "tensors"});
}

TEST_F(CheckpointTest, RefusesNumbersThatCannotBe) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf, 0.0f, -1.0f}) {
    refuses([&](GgufWriter& w) { set_f32(w, "llama.rope.freq_base", bad); }, {"'llama.rope.freq_base'"});
    refuses([&](GgufWriter& w) { w.f32("llama.rope.scaling.factor", bad); }, {"'llama.rope.scaling.factor'"});
    if (bad != 0)
      refuses([&](GgufWriter& w) { set_f32(w, "llama.attention.layer_norm_rms_epsilon", bad); }, {"rms_epsilon"});
    if (!std::isfinite(bad))
      refuses([&](GgufWriter& w) { w.f32("llama.attention.scale", bad); }, {"'llama.attention.scale'"});
    refuses(
        [&](GgufWriter& w) {
          std::vector<float> divisors(8, 1.0f);
          divisors[3] = bad;
          w.tensor("rope_freqs.weight", {8}, divisors);
        },
        {"'rope_freqs.weight'", "at 3"});
  }
  refuses([](GgufWriter& w) { w.remove("llama.attention.layer_norm_rms_epsilon"); }, {"rms_epsilon'", "missing"});
  refuses([](GgufWriter& w) { w.i32("llama.attention.sliding_window", -1); }, {"'llama.attention.sliding_window'"});
}

TEST_F(CheckpointTest, RefusesTensorsThatDoNotFit) {
  const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& tensor : tiny_llama().tensors) all.push_back(tensor.name);
    return all;
  }();
  for (const std::string& name : names) {
    refuses([&](GgufWriter& w) { w.remove_tensor(name); }, {"'" + name + "'", "missing"});
    refuses(
        [&](GgufWriter& w) {  // turned, or of another length
          auto& tensor = w.tensor_named(name);
          if (tensor.shape.size() == 2 && tensor.shape[0] != tensor.shape[1]) {
            std::swap(tensor.shape[0], tensor.shape[1]);
          } else {
            tensor.shape[0] += 32;
            std::uint64_t bytes = 4;
            for (const std::uint64_t n : tensor.shape) bytes *= n;
            tensor.data.resize(bytes);
          }
        },
        {"'" + name + "'", "shape"});
    refuses(
        [&](GgufWriter& w) {  // another axis; to a vector, one of 1 adds nothing
          auto& tensor = w.tensor_named(name);
          if (tensor.shape.size() == 1) tensor.shape.push_back(1);
          tensor.shape.push_back(1);
        },
        {"'" + name + "'", "shape"});
  }
  refuses([](GgufWriter& w) { w.tensor("rope_freqs.weight", {4}, std::vector<float>(4, 1.0f)); },
          {"'rope_freqs.weight'", "[4]", "8 numbers"});
  refuses([](GgufWriter& w) { w.tensor("output.bias", {260}, std::vector<float>(260)); }, {"'output.bias'"});
}

TEST_F(CheckpointTest, RefusesAVocabularyOfTwoSizes) {
  refuses([](GgufWriter& w) { set_u32(w, "llama.vocab_size", 259); }, {"'llama.vocab_size'", "259", "260"});
  refuses(
      [](GgufWriter& w) {
        w.remove("llama.vocab_size");
        auto& embedding = w.tensor_named("token_embd.weight");
        embedding.shape[1] = 261;
        embedding.data.resize(embedding.data.size() + 64 * 4);
      },
      {"'token_embd.weight'", "261", "260"});
}

// A set of three files, the first without tensors (as gguf-split can make it).
TEST_F(CheckpointTest, LoadsAModelInSeveralFiles) {
  const GgufWriter whole = tiny_llama();
  const auto part_path = [&](int i) { return folder / fmt::format("m-{:05}-of-00003.gguf", i + 1); };
  GgufWriter parts[3];
  for (int i = 0; i < 3; ++i) {
    if (i == 0) parts[i].entries = whole.entries;
    parts[i].raw("split.no", 2, testing::little_endian(static_cast<std::uint16_t>(i)));
    parts[i].raw("split.count", 2, testing::little_endian<std::uint16_t>(3));
    parts[i].i32("split.tensors.count", static_cast<std::int32_t>(whole.tensors.size()));
  }
  for (std::size_t i = 0; i < whole.tensors.size(); ++i) parts[1 + i % 2].tensors.push_back(whole.tensors[i]);
  for (int i = 0; i < 3; ++i) parts[i].write(part_path(i));

  const Checkpoint checkpoint = load_checkpoint(part_path(0));
  EXPECT_EQ(checkpoint.files.size(), 3u);
  EXPECT_EQ(checkpoint.mappings.size(), 3u);
  for (const auto& tensor : whole.tensors)
    EXPECT_EQ(std::memcmp(checkpoint.matrix(tensor.name).data, tensor.data.data(), tensor.data.size()), 0);

  expect_error(ErrorCode::bad_input, {"m-00002-of-00003.gguf", "not the first"},
               [&] { load_checkpoint(part_path(1)); });
  std::filesystem::copy(part_path(0), folder / "renamed.gguf");
  expect_error(ErrorCode::bad_input, {"renamed.gguf", "by name"}, [&] { load_checkpoint(folder / "renamed.gguf"); });
  parts[2].tensors.push_back(whole.tensors[0]);
  parts[2].write(part_path(2));
  expect_error(ErrorCode::bad_input, {"m-00003-of-00003.gguf", "'token_embd.weight'", "another part"},
               [&] { load_checkpoint(part_path(0)); });
  std::filesystem::copy(part_path(1), part_path(2), std::filesystem::copy_options::overwrite_existing);
  expect_error(ErrorCode::bad_input, {"m-00003-of-00003.gguf", "not part 3"}, [&] { load_checkpoint(part_path(0)); });
  parts[2].tensors.resize(1);
  parts[2].write(part_path(2));
  expect_error(ErrorCode::bad_input, {"'split.tensors.count'"}, [&] { load_checkpoint(part_path(0)); });
  std::filesystem::remove(part_path(2));
  expect_error(ErrorCode::not_found, {"m-00003-of-00003.gguf"}, [&] { load_checkpoint(part_path(0)); });
  refuses([](GgufWriter& w) { w.i32("split.count", -1); }, {"'split.count'"});
}

}  // namespace
}  // namespace regard
