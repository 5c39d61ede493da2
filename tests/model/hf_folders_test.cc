// The same weights in the ways a Hugging Face folder may keep them: the same bits.

#include <gtest/gtest.h>

#include "model/forward.h"
#include "support/errors.h"
#include "support/hf_folder.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/half.h"

namespace regard {
namespace {

using testing::f32_tensor;
using testing::HfFolder;
using testing::HfTensor;

std::vector<float> logits_of_folder(const std::filesystem::path& path, std::int64_t chunk = 512,
                                    std::int64_t planned = 0, std::int64_t tokens = 24) {
  const Model model = Model::load(path);
  State state(model.config(), 1, planned);
  return testing::all_logits(model, state, testing::some_ids(tokens, model.config().vocabulary), chunk);
}

std::vector<float> logits_of(const HfFolder& made) {
  const testing::TempFolder folder;
  made.write(folder.path());
  return logits_of_folder(folder.path());
}

bool is_linear(const std::string& name) { return name.find("_proj.weight") != std::string::npos; }

std::int64_t elements(const HfTensor& tensor) {
  std::int64_t n = 1;
  for (const std::int64_t extent : tensor.shape) n *= extent;
  return n;
}

// Numbers that every float type here can hold: multiples of 2^-6 up to 1.
std::vector<float> round_numbers(std::int64_t n, std::uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back((static_cast<float>(bits() % 129) - 64) / 64);
  return values;
}

template <typename Number, class Convert>
HfTensor stored_as(const char* format, const HfTensor& f32, const Convert& convert) {
  HfTensor tensor{format, f32.shape, {}};
  for (std::int64_t i = 0; i < elements(f32); ++i) {
    float value;
    std::memcpy(&value, &f32.bytes[static_cast<std::size_t>(4 * i)], 4);
    const Number number = convert(value);
    tensor.bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return tensor;
}

TEST(HfFolders, EveryPlainType) {
  HfFolder made("llama");
  std::uint32_t seed = 0;
  for (auto& [name, tensor] : made.tensors) tensor = f32_tensor(tensor.shape, round_numbers(elements(tensor), ++seed));
  const std::vector<float> expected = logits_of(made);
  const auto all_as = [&](const auto& convert) {
    HfFolder other = made;
    for (auto& [name, tensor] : other.tensors) tensor = convert(tensor);
    EXPECT_TRUE(testing::same_bits(logits_of(other), expected));
  };
  all_as([](const HfTensor& t) { return stored_as<double>("F64", t, [](float v) { return double{v}; }); });
  all_as([](const HfTensor& t) { return stored_as<std::uint16_t>("F16", t, [](float v) { return f16_from_f32(v); }); });
  all_as(
      [](const HfTensor& t) { return stored_as<std::uint16_t>("BF16", t, [](float v) { return bf16_from_f32(v); }); });
}

TEST(HfFolders, TwoShardsAreOneFile) {
  const HfFolder made("llama");
  const testing::TempFolder folder;
  testing::write_file(folder / "config.json", made.config.dump());
  const auto in_first = [](const std::string& name) { return name.find("layers.0") != std::string::npos; };
  testing::write_file(folder / "a-1.safetensors", made.file(in_first));
  testing::write_file(folder / "a-2.safetensors", made.file([&](const std::string& name) { return !in_first(name); }));
  nlohmann::json index;
  for (const auto& [name, tensor] : made.tensors)
    index["weight_map"][name] = in_first(name) ? "a-1.safetensors" : "a-2.safetensors";
  testing::write_file(folder / "model.safetensors.index.json", index.dump());
  EXPECT_TRUE(testing::same_bits(logits_of_folder(folder.path()), logits_of(made)));
}

// A base model leaves out the prefix, and has no head but the embedding.
TEST(HfFolders, WithoutThePrefix) {
  HfFolder made("llama");
  made.config["tie_word_embeddings"] = true;
  // Tied, and yet stored: it has to be the same. Which of two was meant, nobody can tell.
  testing::expect_error(ErrorCode::bad_input, {"'lm_head.weight'", "'model.embed_tokens.weight'", "others"},
                        [&] { logits_of(made); });
  const HfFolder untied = made;
  made.tensors["lm_head.weight"] = made.tensors["model.embed_tokens.weight"];
  const std::vector<float> expected = logits_of(made);
  HfFolder base = made;
  base.tensors.clear();
  for (const auto& [name, tensor] : made.tensors)
    if (name.starts_with("model.")) base.tensors[name.substr(6)] = tensor;
  ASSERT_EQ(base.tensors.size() + 1, made.tensors.size());
  EXPECT_TRUE(testing::same_bits(logits_of(base), expected));
  HfFolder own_head = untied;
  own_head.config["tie_word_embeddings"] = false;
  EXPECT_FALSE(testing::same_bits(logits_of(own_head), expected));
}

// OFP8: four bits of exponent, bias 7, three of mantissa.
float e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code & 128 ? -size : size;
}

// Every linear layer as random codes with random scales, one per block of rows x cols; and the same widened.
void with_float8(HfFolder& narrow, HfFolder& wide, std::int64_t block_rows, std::int64_t block_cols,
                 const std::string& suffix) {
  std::mt19937 bits(7);
  for (auto& [name, tensor] : wide.tensors) {
    if (!is_linear(name)) continue;
    const std::int64_t rows = tensor.shape[0], cols = tensor.shape[1];
    const std::int64_t across = (cols + block_cols - 1) / block_cols, down = (rows + block_rows - 1) / block_rows;
    std::vector<float> scales, values;
    for (std::int64_t i = 0; i < down * across; ++i) scales.push_back(0x1p-12f * static_cast<float>(1 + bits() % 999));
    std::string codes;
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      std::uint8_t code = static_cast<std::uint8_t>(bits());
      if ((code & 127) == 127) code = 0;  // NaN
      codes.push_back(static_cast<char>(code));
      values.push_back(e4m3(code) *
                       scales[static_cast<std::size_t>(i / cols / block_rows * across + i % cols / block_cols)]);
    }
    narrow.tensors[name] = {"F8_E4M3", {rows, cols}, codes};
    narrow.tensors[name + suffix] =
        f32_tensor(down * across == 1 ? std::vector<std::int64_t>{1} : std::vector{down, across}, scales);
    tensor = f32_tensor({rows, cols}, values);
  }
}

TEST(HfFolders, Float8AsWidened) {
  HfFolder narrow("llama"), wide("llama");
  with_float8(narrow, wide, 8, 8, "_scale_inv");
  narrow.config["quantization_config"] = {
      {"quant_method", "fp8"}, {"activation_scheme", "dynamic"}, {"weight_block_size", {8, 8}}};
  EXPECT_TRUE(testing::same_bits(logits_of(narrow), logits_of(wide)));

  HfFolder of_tensor("llama"), same("llama");
  with_float8(of_tensor, same, 1 << 20, 1 << 20, "_scale");
  of_tensor.config["quantization_config"] = {{"quant_method", "compressed-tensors"}};
  const std::string input = "model.layers.0.self_attn.q_proj.input_scale";
  of_tensor.tensors[input] = f32_tensor({1}, {0.5f});  // of activations: not rounded here
  EXPECT_TRUE(testing::same_bits(logits_of(of_tensor), logits_of(same)));
  EXPECT_FALSE(testing::same_bits(logits_of(same), logits_of(wide)));
}

// gpt-oss as it is published: experts of four bits, outputs as rows; unquantised they lie the other way round.
TEST(HfFolders, Mxfp4AsWidened) {
  HfFolder wide("gpt_oss");
  for (const char* member : {"hidden_size", "intermediate_size"}) wide.config[member] = 32;  // whole blocks
  wide.config["num_key_value_heads"] = 4;
  std::uint32_t seed = 40;
  for (auto& [name, tensor] : wide.tensors) {
    for (std::int64_t& extent : tensor.shape)
      if (extent == 16 || extent == 12 || extent == 24) extent = extent == 24 ? 64 : 32;
    tensor = f32_tensor(tensor.shape, round_numbers(elements(tensor), ++seed));
  }
  HfFolder narrow = wide;
  narrow.config["quantization_config"] = {{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"lm_head"}}};
  const float numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::mt19937 bits(9);
  for (auto& [name, tensor] : wide.tensors) {
    if (!name.ends_with(".gate_up_proj") && !name.ends_with(".down_proj")) continue;
    const std::int64_t experts = tensor.shape[0], in = tensor.shape[1], out = tensor.shape[2];
    ASSERT_EQ(in, 32);
    std::vector<float> values(static_cast<std::size_t>(experts * in * out));
    std::string blocks, scales;
    for (std::int64_t e = 0; e < experts; ++e)
      for (std::int64_t row = 0; row < out; ++row) {
        const int exponent = static_cast<int>(bits() % 4) - 4;
        scales.push_back(static_cast<char>(127 + exponent));
        for (std::int64_t col = 0; col < in; ++col) {
          const unsigned code = bits() % 16;
          if (col % 2 == 0) blocks.push_back(static_cast<char>(code));
          if (col % 2 == 1) blocks.back() = static_cast<char>(static_cast<unsigned char>(blocks.back()) | code << 4);
          values[static_cast<std::size_t>((e * in + col) * out + row)] =
              std::ldexp(code & 8 ? -numbers[code & 7] : numbers[code & 7], exponent);
        }
      }
    tensor = f32_tensor(tensor.shape, values);
    narrow.tensors.erase(name);
    narrow.tensors[name + "_blocks"] = {"U8", {experts, out, 1, 16}, blocks};
    narrow.tensors[name + "_scales"] = {"U8", {experts, out, 1}, scales};
  }
  EXPECT_TRUE(testing::same_bits(logits_of(narrow), logits_of(wide)));
}

// Sinks of zero would hide that they are left out.
TEST(HfFolders, SinksTakePart) {
  HfFolder made("gpt_oss"), other("gpt_oss");
  HfTensor& sinks = other.tensors.at("model.layers.1.self_attn.sinks");
  sinks = f32_tensor(sinks.shape, std::vector<float>(static_cast<std::size_t>(elements(sinks)), 0.0f));
  EXPECT_FALSE(testing::same_bits(logits_of(made), logits_of(other)));
}

// Dynamic NTK: the base is that of the longest text expected, from the first token on, so the keys of a prompt and of a
// step by itself are the same.
TEST(HfFolders, DynamicNtkIsOfThePlannedLength) {
  HfFolder made("llama");
  made.config["rope_parameters"] = {{"rope_type", "dynamic"}, {"rope_theta", 100.0}, {"factor", 4.0}};
  const testing::TempFolder folder;
  made.config["max_position_embeddings"] = 32;
  made.write(folder.path());
  const std::vector<float> once = logits_of_folder(folder.path(), 512, 64);
  EXPECT_TRUE(testing::same_bits(logits_of_folder(folder.path(), 1, 64), once));
  EXPECT_TRUE(testing::same_bits(logits_of_folder(folder.path(), 7, 64), once));
  EXPECT_FALSE(testing::same_bits(logits_of_folder(folder.path(), 512, 32), once));
}

}  // namespace
}  // namespace regard
