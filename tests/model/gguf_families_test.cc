// The small models of tests/data/families as GGUF files (to_gguf.py there), beside the folders they were made from: the
// same logits to the bit where the file has the same numbers, else as near to the public implementation's float64
// values as law 1 asks.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <span>

#include "model/forward.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "weights/safetensors.h"

namespace regard {
namespace {

struct Converted {
  const char* name;
  bool same_bits;          // else within 2 x err32
  std::int64_t rows = 66;  // of the text, from the first: those for which the file says all that the folder does
};

// Not the same numbers: q and k of Llama, whose channels come in another order (and so do their sums); Llama 3's
// frequencies, which the file has as f32 divisors. Qwen 2's windows are in no key: they begin to matter in row 11.
constexpr Converted kConverted[] = {
    {"llama", false},   {"llama_bias", false},     {"llama_llama3", false}, {"llama_yarn", false},
    {"mistral", false}, {"qwen2", true, 11},       {"qwen3", true},         {"qwen3_moe", true},
    {"gemma2", true},   {"gemma3_f32", true},      {"phi3", true},          {"gpt2", true},
    {"gpt_neox", true}, {"gpt_neox_serial", true}, {"gpt_oss", true},       {"bert_bare", true},
};

template <typename T>
std::span<const T> numbers(const SafetensorsFiles& files, const std::string& name) {
  const StoredTensor& tensor = files.tensors.at(name);
  return {reinterpret_cast<const T*>(tensor.data), static_cast<std::size_t>(tensor.bytes) / sizeof(T)};
}

// Logits of every row; where there is no head, what the last layer left.
std::vector<float> outputs(const Model& model, const std::vector<std::int32_t>& ids) {
  State state(model.config());
  if (model.config().head) return testing::all_logits(model, state, ids, 512, 0, nullptr);
  std::vector<float> all;
  FeedOptions options;
  options.on_rows = [&](std::int64_t, View<const float, 2> resid) {
    all.insert(all.end(), &resid(0, 0), &resid(0, 0) + resid.shape[0] * resid.shape[1]);
  };
  feed(model, state, ids, 0, options);
  return all;
}

class GgufFamilies : public ::testing::TestWithParam<Converted> {};

TEST_P(GgufFamilies, SayWhatTheirFoldersSay) {
  const std::filesystem::path families = std::filesystem::path(REGARD_TEST_DATA) / "families";
  const auto [name, same_bits, rows] = GetParam();
  const SafetensorsFiles expected = read_safetensors(families / name / "expected.safetensors");
  const auto wide = numbers<std::int64_t>(expected, "ids");
  const std::vector<std::int32_t> ids(wide.begin(), wide.begin() + rows);

  const Model model = Model::load(families / "gguf" / (std::string(name) + ".gguf"));
  const std::vector<float> got = outputs(model, ids);
  if (same_bits) {
    const Model folder = Model::load(families / name);
    EXPECT_EQ(folder.config().head, model.config().head);
    EXPECT_TRUE(testing::same_bits(got, outputs(folder, ids)));
    return;
  }
  const auto truth = numbers<double>(expected, "logits");
  const double allowed = 2 * std::stod(expected.metadata.at("err32_logits"));
  ASSERT_EQ(got.size(), truth.size());
  double error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) error = std::max(error, std::fabs(got[i] - truth[i]));
  EXPECT_LE(error, allowed);
}

INSTANTIATE_TEST_SUITE_P(All, GgufFamilies, ::testing::ValuesIn(kConverted),
                         [](const auto& converted) { return std::string(converted.param.name); });

}  // namespace
}  // namespace regard
