// The model against the plain loops of support/reference_model.h: every site, every dtype, law 1.

#include "support/reference_model.h"

#include <gtest/gtest.h>

#include <map>

#include "support/targets.h"
#include "support/tiny_model.h"

namespace regard {
namespace {

using testing::ReferenceModel;

// Keeps the value of every site.
class KeepAll : public Tap {
 public:
  bool wants(Site, std::int64_t) const override { return true; }
  void at(Site site, std::int64_t layer, std::span<const Row>, View<float, 3> value) override {
    std::vector<float>& kept = sites[full_name(site, layer)];
    for (std::int64_t r = 0; r < value.shape[0]; ++r)
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        for (std::int64_t c = 0; c < value.shape[2]; ++c) kept.push_back(value(r, h, c));
  }
  std::map<std::string, std::vector<float>> sites;
};

template <typename T>
std::vector<T> flat(const std::vector<std::vector<T>>& rows) {
  std::vector<T> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

void compare(const testing::TinyLlama& tiny) {
  const testing::TinyModelFile file(tiny);
  const Model model = Model::load(file.path());
  const auto ids = testing::some_ids(40, model.config().vocabulary, tiny.seed);
  ReferenceModel<double> truth(model.checkpoint());
  ReferenceModel<float> plain(model.checkpoint());
  const auto true_logits = flat(truth.logits(ids));
  const auto plain_logits = flat(plain.logits(ids));
  testing::on_each_target([&](const std::string&) {
    State state(model.config());
    KeepAll tap;
    const auto got = testing::all_logits(model, state, ids, 512, 0, &tap);
    EXPECT_TRUE(testing::within_law_1(got, plain_logits, true_logits)) << "logits";
    for (const auto& [name, value] : truth.sites) {
      ASSERT_TRUE(tap.sites.contains(name)) << name;
      if (name == "blocks.0.resid_pre") {
        EXPECT_EQ(testing::max_error(tap.sites[name], flat(value)), 0);
      } else {
        EXPECT_TRUE(testing::within_law_1(tap.sites[name], flat(plain.sites[name]), flat(value))) << name;
      }
    }
  });
}

TEST(Reference, PlainWeights) { compare({}); }
TEST(Reference, UntiedHeadAndBiases) { compare({.layers = 3, .tied = false, .biases = true, .seed = 5}); }
TEST(Reference, RopeDivisors) { compare({.rope_divisors = true, .seed = 6}); }
TEST(Reference, OneHeadPerKey) { compare({.heads = 3, .kv_heads = 3, .head_dim = 20, .width = 52, .seed = 7}); }
TEST(Reference, OneKeyHeadForAll) { compare({.heads = 6, .kv_heads = 1, .head_dim = 8, .width = 48, .seed = 8}); }

TEST(Reference, EveryStoredType) {
  for (DType type : {DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0,
                     DType::iq4_nl, DType::mxfp4}) {
    SCOPED_TRACE(info(type).name);
    compare({.type = type, .embedding_type = DType::q8_0, .seed = 9});
  }
  for (DType type : {DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_xs}) {
    SCOPED_TRACE(info(type).name);
    compare({.layers = 1, .heads = 4, .head_dim = 64, .width = 256, .hidden = 256, .type = type, .seed = 10});
  }
}

// The books balance: the heads' parts plus bias are attn_out, and attn_out is what the residual gained.
TEST(Reference, HeadsAddUpToAttentionOut) {
  const testing::TinyModelFile file(testing::TinyLlama{.biases = true, .seed = 11});
  const Model model = Model::load(file.path());
  const ModelConfig& c = model.config();
  State state(c);
  KeepAll tap;
  testing::all_logits(model, state, testing::some_ids(20, c.vocabulary), 512, 0, &tap);
  for (std::int64_t l = 0; l < c.layers; ++l) {
    const auto& result = tap.sites[full_name(Site::result, l)];
    const auto& out = tap.sites[full_name(Site::attn_out, l)];
    const auto& pre = tap.sites[full_name(Site::resid_pre, l)];
    const auto& mid = tap.sites[full_name(Site::resid_mid, l)];
    for (std::int64_t r = 0; r < 20; ++r)
      for (std::int64_t i = 0; i < c.width; ++i) {
        double sum = model.layers()[l].o.bias[i], size = std::fabs(sum);
        for (std::int64_t h = 0; h < c.heads; ++h) {
          sum += result[(r * c.heads + h) * c.width + i];
          size += std::fabs(result[(r * c.heads + h) * c.width + i]);
        }
        // A chain of H * E sums rounds by at most half an ulp of the running size each; twice, for both ways of adding.
        EXPECT_NEAR(sum, out[r * c.width + i], 2 * size * 0x1p-24 * static_cast<double>(c.heads * c.value_dim));
        EXPECT_EQ(pre[r * c.width + i] + out[r * c.width + i], mid[r * c.width + i]);
      }
  }
}

}  // namespace
}  // namespace regard
