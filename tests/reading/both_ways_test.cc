// Every statistic of rows that read to both sides, with windows and without, and with a learned sink: against the exact
// weights (tests/data/families; that the weights are right is tests/model's matter).

#include "kernels/dequantize.h"
#include "model/taps.h"
#include "reading/model_reading.h"
#include "reading/sink.h"
#include "reading/tile_map.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kLength = 60;  // more than any window there

// What the formulas of mixing and flow are made of.
class Parts final : public Tap {
 public:
  bool wants(Site site, std::int64_t) const override {
    return site == Site::resid_pre || site == Site::v || site == Site::attn_out || site == Site::resid_mid;
  }
  void at(Site site, std::int64_t, std::span<const Row>, View<float, 3> value) override {
    auto& layer = values[site].emplace_back();
    for (std::int64_t r = 0; r < value.shape[0]; ++r)
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        for (std::int64_t c = 0; c < value.shape[2]; ++c) layer.push_back(value(r, h, c));
  }
  std::map<Site, std::vector<std::vector<double>>> values;  // [layer] of [T, heads * channels]
};

class BothWays : public ::testing::TestWithParam<std::string> {
 protected:
  BothWays() : model_(Model::load(std::filesystem::path(REGARD_TEST_DATA) / "families" / GetParam())) {
    testing::Numbers numbers(7);  // few different tokens, so that some come again
    for (std::int64_t i = 0; i < kLength; ++i) ids_.push_back(static_cast<std::int32_t>(numbers.below(12)));
    ReadingRequest request = everything(kLength);
    request.statistics = parse_statistics("all", &model_.config());
    request.statistics.push_back(Statistic::groups);
    State state(model_.config());
    ReadingTap tap(model_, request, ids_);
    Taps taps({&tap, &parts_});
    feed(model_, state, ids_, 0, {.tap = &taps, .on_rows = {}});
    reading_ = tap.finish(&state);
  }

  // values(l, h, i) = sum_j P factor(i, j), over all keys.
  template <typename Factor>
  void expect_sums(Statistic statistic, Factor&& factor) const {
    SCOPED_TRACE(std::string(info(statistic).name));
    std::vector<double> truth;
    std::vector<float> plain;
    const auto& p = reading_.weights;
    for (std::int64_t l = 0; l < p.shape()[0]; ++l) {
      for (std::int64_t h = 0; h < p.shape()[1]; ++h) {
        for (std::int64_t i = 0; i < kLength; ++i) {
          double sum = 0;
          float in_f32 = 0;
          for (std::int64_t j = 0; j < kLength; ++j) {
            sum += static_cast<double>(p(l, h, i, j)) * static_cast<double>(factor(i, j));
            in_f32 += p(l, h, i, j) * static_cast<float>(factor(i, j));
          }
          truth.push_back(sum);
          plain.push_back(in_f32);
        }
      }
    }
    EXPECT_TRUE(within_law_1(all_of(reading_.per_row.at(statistic)), plain, truth));
  }

  std::vector<double> output_matrix(std::int64_t layer) const {  // [C, H * E]
    const Matrix& w = model_.layers()[layer].o.weight;
    std::vector<float> row(static_cast<std::size_t>(w.cols));
    std::vector<double> all;
    for (std::int64_t r = 0; r < w.rows; ++r) {
      dequantize(w, r, 0, w.cols, row.data());
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }
  // sum_h P_h,ij v_j W_O^h: [C]
  template <typename T>
  std::vector<T> part(std::int64_t l, std::int64_t i, std::int64_t j, const std::vector<double>& w) const {
    const ModelConfig& c = model_.config();
    const std::vector<double>& v = parts_.values.at(Site::v)[l];
    const std::int64_t E = c.value_dim, group = c.heads / c.kv_heads;
    std::vector<T> sum(static_cast<std::size_t>(c.width));
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t e = 0; e < E; ++e) {
        const T z =
            static_cast<T>(reading_.weights(l, h, i, j)) * static_cast<T>(v[(j * c.kv_heads + h / group) * E + e]);
        for (std::int64_t k = 0; k < c.width; ++k) sum[k] += z * static_cast<T>(w[k * c.heads * E + h * E + e]);
      }
    return sum;
  }

  // The mixing ratio of row i, then flow: of each position and of the residual.
  template <typename T>
  std::vector<T> mixing_and_flow(std::int64_t l, std::int64_t i, const std::vector<double>& w) const {
    const std::int64_t C = model_.config().width;
    const auto of_row = [&](Site site) {
      const double* row = &parts_.values.at(site)[l][i * C];
      return std::vector<T>(row, row + C);
    };
    const std::vector<T> x = of_row(Site::resid_pre), o = of_row(Site::attn_out), y = of_row(Site::resid_mid);
    const std::vector<T> own = part<T>(l, i, i, w);
    T mixed = 0, kept = 0;
    for (std::int64_t k = 0; k < C; ++k) {
      mixed += (o[k] - own[k]) * (o[k] - own[k]);
      kept += (own[k] + x[k]) * (own[k] + x[k]);
    }
    std::vector<T> all = {std::sqrt(mixed) / (std::sqrt(mixed) + std::sqrt(kept))};
    T sum = 0;
    const auto add_nearness = [&](const std::vector<T>& term) {
      T near = 0;
      for (std::int64_t k = 0; k < C; ++k) near += std::abs(y[k]) - std::abs(y[k] - term[k]);
      sum += all.emplace_back(std::max(near, T{0}));
    };
    for (std::int64_t j = 0; j < kLength; ++j) add_nearness(part<T>(l, i, j, w));
    add_nearness(x);
    for (std::size_t n = 1; n < all.size(); ++n) all[n] /= sum;
    return all;
  }

  // r_l of a row, from the top layer down.
  template <typename T>
  std::vector<T> rolled_out(std::int64_t row) const {
    const auto& p = reading_.weights;
    const std::int64_t H = p.shape()[1];
    std::vector<T> share(kLength), all;
    share[row] = 1;
    for (std::int64_t l = p.shape()[0] - 1; l >= 0; --l) {
      std::vector<T> below(kLength);
      for (std::int64_t i = 0; i < kLength; ++i) {
        below[i] += share[i] / 2;
        for (std::int64_t h = 0; h < H; ++h)
          for (std::int64_t j = 0; j < kLength; ++j)
            below[j] += share[i] * static_cast<T>(p(l, h, i, j)) / static_cast<T>(2 * H);
      }
      share = below;
      all.insert(all.end(), share.begin(), share.end());
    }
    return all;
  }

  Model model_;
  std::vector<std::int32_t> ids_;
  Parts parts_;
  Reading reading_;
};

TEST_P(BothWays, EveryStatisticIsThatOfTheWeights) {
  const auto again = [&](std::int64_t i, std::int64_t j) { return j >= 0 && j < i && ids_[i] == ids_[j]; };
  expect_sums(Statistic::sink, [](std::int64_t, std::int64_t j) { return j == 0; });
  expect_sums(Statistic::distance, [](std::int64_t i, std::int64_t j) { return std::abs(i - j); });
  expect_sums(Statistic::previous, [](std::int64_t i, std::int64_t j) { return j == i - 1; });
  expect_sums(Statistic::duplicate, [&](std::int64_t i, std::int64_t j) { return again(i, j); });
  expect_sums(Statistic::induction, [&](std::int64_t i, std::int64_t j) { return again(i, j - 1); });

  const auto& p = reading_.weights;
  const std::int64_t L = p.shape()[0], H = p.shape()[1], T = kLength, bins = reading_.distances.shape()[2];
  EXPECT_EQ(reading_.distance_edges.back(), T);
  std::vector<double> entropy, columns(L * H * T), distances(L * H * bins), groups(L * H * T * 3);
  std::vector<float> plain_entropy, plain_columns(L * H * T), plain_distances(L * H * bins),
      plain_groups(L * H * T * 3);
  double later = 0;
  for (std::int64_t l = 0; l < L; ++l) {
    for (std::int64_t h = 0; h < H; ++h) {
      for (std::int64_t i = 0; i < T; ++i) {
        double e = 0, row = 0;
        float plain = 0;
        std::int64_t strongest = 0;
        for (std::int64_t j = 0; j < T; ++j) {
          const float w = p(l, h, i, j);
          row += w;
          if (j > i) later += w;
          if (w > p(l, h, i, strongest)) strongest = j;
          if (w > 0) e -= w * std::log(static_cast<double>(w)), plain -= w * std::log(w);
          columns[(l * H + h) * T + j] += w;
          plain_columns[(l * H + h) * T + j] += w;
          std::int64_t bin = 0;
          while (reading_.distance_edges[bin + 1] <= std::abs(i - j)) ++bin;
          distances[(l * H + h) * bins + bin] += w;
          plain_distances[(l * H + h) * bins + bin] += w;
          if (const std::int32_t g = reading_.request.groups[j]; g >= 0) {
            groups[((l * H + h) * T + i) * 3 + g] += w;
            plain_groups[((l * H + h) * T + i) * 3 + g] += w;
          }
        }
        // Each weight, the sink's share and their common sum are rounded once or a few times.
        EXPECT_NEAR(row + reading_.per_row.at(Statistic::sink_share)(l, h, i), 1, kLength * 0x1p-24);
        entropy.push_back(e);
        plain_entropy.push_back(plain);
        EXPECT_EQ(reading_.top_key(l, h, i, 0), strongest);
        EXPECT_EQ(reading_.top_weight(l, h, i, 0), p(l, h, i, strongest));
      }
    }
  }
  EXPECT_TRUE(model_.config().causal ? later == 0 : later > 1) << later;
  EXPECT_TRUE(within_law_1(all_of(reading_.per_row.at(Statistic::entropy)), plain_entropy, entropy));
  EXPECT_TRUE(within_law_1(all_of(reading_.column_sum), plain_columns, columns));
  EXPECT_TRUE(within_law_1(all_of(reading_.distances), plain_distances, distances));
  EXPECT_TRUE(within_law_1(all_of(reading_.group_mass), plain_groups, groups));
}

TEST_P(BothWays, RolloutIsTheProductOfAllLayers) {
  std::vector<float> got, plain;
  std::vector<double> truth;
  for (const std::int64_t row : {std::int64_t{0}, kLength / 2, kLength - 1}) {
    for (std::int64_t l = reading_.weights.shape()[0] - 1; l >= 0; --l)
      for (std::int64_t j = 0; j < kLength; ++j) got.push_back(reading_.rollout(l, row, j));
    const std::vector<float> f = rolled_out<float>(row);
    const std::vector<double> d = rolled_out<double>(row);
    plain.insert(plain.end(), f.begin(), f.end());
    truth.insert(truth.end(), d.begin(), d.end());
  }
  EXPECT_TRUE(within_law_1(got, plain, truth));
}

TEST_P(BothWays, MixingAndFlowAreThoseOfTheFormulas) {
  if (!is_known(Statistic::mixing, model_.config())) {
    EXPECT_EQ(model_.config().norm_place, NormPlace::around);
    EXPECT_FALSE(is_known(Statistic::flow, model_.config()));
    return;
  }
  std::vector<float> got, plain;
  std::vector<double> truth;
  for (std::int64_t l = 0; l < reading_.weights.shape()[0]; ++l) {
    const std::vector<double> w = output_matrix(l);
    for (std::int64_t i = 0; i < kLength; ++i) {
      got.push_back(reading_.mixing(l, i));
      for (std::int64_t j = 0; j < kLength; ++j) got.push_back(reading_.flow.positions(l, i, j));
      got.push_back(reading_.flow.residual(l, i));
      const std::vector<float> f = mixing_and_flow<float>(l, i, w);
      const std::vector<double> d = mixing_and_flow<double>(l, i, w);
      plain.insert(plain.end(), f.begin(), f.end());
      truth.insert(truth.end(), d.begin(), d.end());
    }
  }
  EXPECT_TRUE(within_law_1(got, plain, truth));
}

TEST_P(BothWays, AMapIsOfTheSameWeights) {
  const std::int64_t layer = 1, head = 1;
  const TileMap map = read_map(
      model_, ids_, {.layer = layer, .head = head, .rectangle = {3, 9, 0, kLength}, .height = 100, .width = 100});
  for (std::int64_t row = 3; row < 9; ++row)
    for (std::int64_t key = 0; key < kLength; ++key)
      EXPECT_EQ(map.cells(row - 3, key), reading_.weights(layer, head, row, key));
}

TEST_P(BothWays, TheLensEndsAtTheLogits) {
  if (!model_.config().head) {
    EXPECT_TRUE(reading_.lens.empty());
    return;
  }
  State state(model_.config());
  const std::vector<float> logits = testing::all_logits(model_, state, ids_, 512);
  const std::int64_t V = model_.config().vocabulary;
  for (std::int64_t row = 0; row < kLength; ++row) {
    const auto first = std::max_element(&logits[row * V], &logits[row * V] + V) - &logits[row * V];
    EXPECT_EQ(reading_.lens.back()[row].top[0].id, first);
    EXPECT_EQ(reading_.lens.back()[row].top[0].logit, logits[row * V + first]);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, BothWays,
                         ::testing::Values("bert", "bert_bare", "distilbert", "modernbert", "gemma3", "mistral",
                                           "gpt_oss", "gpt_neox", "opt_post_norm"),
                         [](const auto& info) { return info.param; });

// Parts of a logit add up to it, also where branches are parallel and the head has a bias; else they are refused.
TEST(DirectEffects, AddUpToTheLogitOrAreRefusedByName) {
  for (const char* family : {"gpt_neox", "gpt_oss", "qwen3_moe", "gpt2", "opt", "phi3"}) {
    SCOPED_TRACE(family);
    const Model model = Model::load(std::filesystem::path(REGARD_TEST_DATA) / "families" / family);
    const auto ids = testing::some_ids(30, model.config().vocabulary);
    ReadingRequest request;
    request.statistics = {Statistic::direct, Statistic::lens};
    State state(model.config());
    ReadingTap tap(model, request, ids);
    feed(model, state, ids, 0, {.tap = &tap, .on_rows = {}});
    const Reading r = tap.finish(&state);
    EXPECT_NEAR(r.direct.total(0), r.lens.back()[0].final.logit, 1e-4);
  }
  for (const auto& [family, reason] : {std::pair{"bert", "a norm follows every sum"},
                                       {"modernbert", "its head is not one product"},
                                       {"bert_bare", "no head"},
                                       {"gemma3", "a norm joins"}}) {
    const Model model = Model::load(std::filesystem::path(REGARD_TEST_DATA) / "families" / family);
    ReadingRequest request;
    request.statistics = {Statistic::direct};
    try {
      resolve(request, model.config(), 5);
      ADD_FAILURE() << family;
    } catch (const Error& error) {
      EXPECT_NE(error.message.find(reason), std::string::npos) << error.message;
    }
  }
  const Model bert = Model::load(std::filesystem::path(REGARD_TEST_DATA) / "families" / "bert");
  ReadingRequest request;
  request.statistics = {Statistic::copying};
  EXPECT_THROW(resolve(request, bert.config(), 5), Error);  // the next token is seen
}

// The same mass on one position from every row: a sink wherever it stands, if rows read both ways; and in a layer with
// a window it counts against the rows that see it.
TEST(FindSinkBothWays, AnywhereInTheText) {
  constexpr std::int64_t T = 40;
  ModelConfig config;
  config.causal = false;
  config.window = {0};
  Tensor<float, 3> sum({1, 2, T});
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t k = 0; k < T; ++k) sum(0, h, k) = k == T - 1 ? 0.8f * T : 0.2f * T / (T - 1);
  const std::int64_t layer = 0;
  const auto last = find_sink(sum.view(), config, std::span(&layer, 1));
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->position, T - 1);
  EXPECT_NEAR(last->mass, 0.8, 1e-6);
  config.causal = true;
  EXPECT_FALSE(find_sink(sum.view(), config, std::span(&layer, 1)));  // half of the text would have to see it

  config.window = {8};
  Tensor<float, 3> near({1, 1, T});
  near(0, 0, 10) = 7;  // of the 8 rows that see it
  const auto windowed = find_sink(near.view(), config, std::span(&layer, 1));
  ASSERT_TRUE(windowed.has_value());
  EXPECT_EQ(windowed->mass, 7.0 / 8);
}

}  // namespace
}  // namespace regard
