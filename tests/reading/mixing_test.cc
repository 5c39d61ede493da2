#include "reading/mixing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "kernels/dequantize.h"
#include "model/forward.h"
#include "reading/reading_tap.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kMixedTokens = 40;

// Values, block inputs and attention's outputs of one pass, [layer][rows * channels].
class MixedParts : public Tap {
 public:
  bool wants(Site site, std::int64_t) const override {
    return site == Site::v || site == Site::resid_pre || site == Site::attn_out;
  }
  void at(Site site, std::int64_t, std::span<const Row>, View<float, 3> value) override {
    std::vector<float>& to = of[site].emplace_back();
    for (std::int64_t r = 0; r < value.shape[0]; ++r)
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        for (std::int64_t c = 0; c < value.shape[2]; ++c) to.push_back(value(r, h, c));
  }
  std::map<Site, std::vector<std::vector<float>>> of;
};

class Mixing : public ::testing::Test {
 protected:
  Mixing() : file_({.layers = 2, .heads = 6, .kv_heads = 2, .width = 96}), model_(Model::load(file_.path())) {
    ids_ = testing::some_ids(kMixedTokens, model_.config().vocabulary);
  }
  void feed_all(Tap& tap, std::int64_t chunk) const {
    State state(model_.config());
    FeedOptions options;
    options.chunk = chunk;
    options.tap = &tap;
    feed(model_, state, ids_, 0, options);
  }
  std::vector<float> ratios(std::int64_t chunk) const {
    MixingTap tap(model_, kMixedTokens);
    feed_all(tap, chunk);
    return {tap.ratio().data(), tap.ratio().data() + tap.ratio().size()};
  }
  // The formula as it stands, in T, from the parts.
  template <typename T>
  std::vector<T> plain(const MixedParts& parts, const Reading& reading) const {
    const ModelConfig& c = model_.config();
    const std::int64_t H = c.heads, G = c.kv_heads, E = c.value_dim, C = c.width;
    std::vector<T> all;
    std::vector<float> w(H * E);
    for (std::int64_t l = 0; l < c.layers; ++l) {
      for (std::int64_t i = 0; i < kMixedTokens; ++i) {
        T mixed = 0, kept = 0;
        for (std::int64_t k = 0; k < C; ++k) {
          dequantize(model_.layers()[l].o.weight, k, 0, H * E, w.data());
          T own = 0;
          for (std::int64_t h = 0; h < H; ++h)
            for (std::int64_t e = 0; e < E; ++e)
              own += static_cast<T>(w[h * E + e]) * static_cast<T>(reading.weights(l, h, i, i)) *
                     static_cast<T>(parts.of.at(Site::v)[l][(i * G + h / (H / G)) * E + e]);
          const T mix = static_cast<T>(parts.of.at(Site::attn_out)[l][i * C + k]) - own;
          const T keep = own + static_cast<T>(parts.of.at(Site::resid_pre)[l][i * C + k]);
          mixed += mix * mix;
          kept += keep * keep;
        }
        all.push_back(std::sqrt(mixed) / (std::sqrt(mixed) + std::sqrt(kept)));
      }
    }
    return all;
  }
  testing::TinyModelFile file_;
  Model model_;
  std::vector<std::int32_t> ids_;
};

TEST_F(Mixing, IsTheFormula) {
  MixedParts parts;
  feed_all(parts, 512);
  ReadingRequest request;
  request.statistics = {Statistic::weights};
  request.rows.resize(kMixedTokens);
  std::iota(request.rows.begin(), request.rows.end(), 0);
  ReadingTap tap(model_, request, ids_);
  feed_all(tap, 512);
  const Reading reading = tap.finish();
  const std::vector<float> ratio = ratios(512);
  EXPECT_TRUE(testing::within_law_1(ratio, plain<float>(parts, reading), plain<double>(parts, reading)));
  for (std::size_t i = 0; i < ratio.size(); ++i) {
    // The first row reads itself alone: what attention adds is its own, to the last bit.
    if (i % kMixedTokens == 0) {
      EXPECT_EQ(ratio[i], 0);
    } else {
      EXPECT_GT(ratio[i], 0);
      EXPECT_LT(ratio[i], 1);
    }
  }
}

TEST_F(Mixing, AReadingHoldsThoseOfItsLayers) {
  ReadingRequest request;
  request.statistics = {Statistic::mixing};
  request.layers = {1};
  ReadingTap tap(model_, request, ids_);
  feed_all(tap, 7);
  const Reading reading = tap.finish();
  const std::vector<float> expected = ratios(512), values(reading.mixing.data(), reading.mixing.data() + kMixedTokens);
  EXPECT_EQ(reading.mixing.size(), kMixedTokens);
  EXPECT_TRUE(testing::same_bits({expected.begin() + kMixedTokens, expected.end()}, values));
}

// ||P_ij v_j W_O^h||, and its sums over the rows, from the parts.
TEST_F(Mixing, NormWeightedWeightsAreTheFormula) {
  MixedParts parts;
  feed_all(parts, 512);
  ReadingRequest request;
  request.statistics = parse_statistics("weights,norm_weighted,norm_weighted_column_sum");
  request.rows.resize(kMixedTokens);
  std::iota(request.rows.begin(), request.rows.end(), 0);
  ReadingTap tap(model_, request, ids_);
  feed_all(tap, 512);
  const Reading r = tap.finish();
  const auto moved = [&]<typename T>(T) {
    const ModelConfig& c = model_.config();
    const std::int64_t H = c.heads, E = c.value_dim;
    std::pair<std::vector<T>, std::vector<T>> all;
    all.second.resize(c.layers * H * kMixedTokens);
    std::vector<float> w(H * E);
    for (std::int64_t l = 0; l < c.layers; ++l) {
      std::vector<T> norm(H * kMixedTokens);
      for (std::int64_t k = 0; k < c.width; ++k) {
        dequantize(model_.layers()[l].o.weight, k, 0, H * E, w.data());
        for (std::int64_t h = 0; h < H; ++h) {
          for (std::int64_t j = 0; j < kMixedTokens; ++j) {
            T sum = 0;
            for (std::int64_t e = 0; e < E; ++e)
              sum += static_cast<T>(w[h * E + e]) *
                     static_cast<T>(parts.of.at(Site::v)[l][(j * c.kv_heads + h / (H / c.kv_heads)) * E + e]);
            norm[h * kMixedTokens + j] += sum * sum;
          }
        }
      }
      for (std::int64_t h = 0; h < H; ++h) {
        for (std::int64_t i = 0; i < kMixedTokens; ++i) {
          for (std::int64_t j = 0; j < kMixedTokens; ++j) {
            const T value = static_cast<T>(r.weights(l, h, i, j)) * std::sqrt(norm[h * kMixedTokens + j]);
            all.first.push_back(value);
            all.second[(l * H + h) * kMixedTokens + j] += value;
          }
        }
      }
    }
    return all;
  };
  const auto plain = moved(0.0f);
  const auto truth = moved(0.0);
  EXPECT_TRUE(
      testing::within_law_1(std::span(r.norm_weighted.data(), r.norm_weighted.size()), plain.first, truth.first));
  EXPECT_TRUE(testing::within_law_1(std::span(r.norm_weighted_column_sum.data(), r.norm_weighted_column_sum.size()),
                                    plain.second, truth.second));
}

// c = max(|y|_1 - |y - t|_1, 0) of each part of y, from the parts.
TEST_F(Mixing, FlowIsTheFormula) {
  MixedParts parts;
  feed_all(parts, 512);
  ReadingRequest request;
  request.statistics = parse_statistics("weights,flow");
  request.rows = {kMixedTokens - 1, 20, 0};
  State state(model_.config());
  ReadingTap tap(model_, request, ids_);
  FeedOptions options;
  options.chunk = 7;
  options.tap = &tap;
  feed(model_, state, ids_, 0, options);
  const Reading r = tap.finish(&state);
  const auto shares = [&]<typename T>(T) {
    const ModelConfig& c = model_.config();
    const std::int64_t H = c.heads, E = c.value_dim, C = c.width;
    std::vector<T> all;
    std::vector<float> w(H * E);
    for (std::int64_t l = 0; l < c.layers; ++l) {
      for (std::size_t row = 0; row < r.request.rows.size(); ++row) {
        const std::int64_t i = r.request.rows[row];
        std::vector<T> near(kMixedTokens + 1);  // the residual last
        for (std::int64_t k = 0; k < C; ++k) {
          dequantize(model_.layers()[l].o.weight, k, 0, H * E, w.data());
          const T x = parts.of.at(Site::resid_pre)[l][i * C + k];
          const T y = x + static_cast<T>(parts.of.at(Site::attn_out)[l][i * C + k]);
          for (std::int64_t j = 0; j <= i; ++j) {
            T part = 0;
            for (std::int64_t h = 0; h < H; ++h)
              for (std::int64_t e = 0; e < E; ++e)
                part += static_cast<T>(w[h * E + e]) * static_cast<T>(r.weights(l, h, row, j)) *
                        static_cast<T>(parts.of.at(Site::v)[l][(j * c.kv_heads + h / (H / c.kv_heads)) * E + e]);
            near[j] += std::fabs(y) - std::fabs(y - part);
          }
          near[kMixedTokens] += std::fabs(y) - std::fabs(y - x);
        }
        T sum = 0;
        for (T& value : near) sum += value = std::max(value, T(0));
        for (const T value : near) all.push_back(value / sum);
      }
    }
    return all;
  };
  std::vector<float> flow;
  for (std::int64_t l = 0; l < 2; ++l) {
    for (std::int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (std::int64_t s = 0; s <= kMixedTokens; ++s) {
        flow.push_back(s < kMixedTokens ? r.flow.positions(l, row, s) : r.flow.residual(l, row));
        sum += flow.back();
      }
      EXPECT_NEAR(sum, 1, (kMixedTokens + 1) * 0x1p-25);
    }
  }
  EXPECT_TRUE(testing::within_law_1(flow, shares(0.0f), shares(0.0)));
}

TEST_F(Mixing, SameBitsInChunksOnThreadsAndTargets) {
  const std::vector<float> expected = ratios(512);
  EXPECT_TRUE(testing::same_bits(expected, ratios(1)));
  EXPECT_TRUE(testing::same_bits(expected, ratios(7)));
  testing::expect_same_bits_everywhere([&] { return ratios(16); });
}

TEST_F(Mixing, MoreRowsThanPlannedAreAnError) {
  MixingTap tap(model_, 5);
  EXPECT_THROW(feed_all(tap, 512), Error);
}

}  // namespace
}  // namespace regard
