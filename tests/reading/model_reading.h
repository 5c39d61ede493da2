#pragma once
// Readings of a small random model, for the tests of all that a tap reads there.

#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <vector>

#include "model/forward.h"
#include "reading/reading_tap.h"
#include "support/targets.h"
#include "support/tiny_model.h"

namespace regard {

using testing::same_bits;
using testing::within_law_1;

constexpr std::int64_t kTokens = 140;  // past one block of keys

inline ReadingRequest everything(std::int64_t tokens = kTokens) {
  ReadingRequest request;
  request.statistics = parse_statistics("all,groups");
  request.resid = true;
  request.top = 5;
  request.rows.resize(tokens);
  std::iota(request.rows.begin(), request.rows.end(), 0);
  for (std::int64_t j = 0; j < tokens; ++j) request.groups.push_back(static_cast<std::int32_t>(j % 7) / 2 - 1);
  return request;
}

template <typename T, int Rank>
std::span<const T> all_of(const Tensor<T, Rank>& tensor) {
  return {tensor.data(), static_cast<std::size_t>(tensor.size())};
}

// All floats of a reading, one after the other.
inline std::vector<float> flat(const Reading& reading) {
  std::vector<float> all;
  const auto add = [&](const auto& tensor) { all.insert(all.end(), tensor.data(), tensor.data() + tensor.size()); };
  for (const auto& [statistic, values] : reading.per_row) add(values);
  for (const auto& [statistic, values] : reading.mean) add(values);
  add(reading.column_sum);
  add(reading.distances);
  add(reading.copying);
  add(reading.value_norm);
  add(reading.weights);
  add(reading.top_weight);
  add(reading.group_mass);
  add(reading.resid);
  add(reading.mixing);
  add(reading.norm_weighted);
  add(reading.norm_weighted_column_sum);
  add(reading.rollout);
  add(reading.flow.positions);
  add(reading.flow.residual);
  for (std::int64_t i = 0; i < reading.top_key.size(); ++i)
    all.push_back(static_cast<float>(reading.top_key.data()[i]));
  for (const std::vector<LensRow>& layer : reading.lens) {
    for (const LensRow& row : layer) {
      for (const Guess& guess : row.top)
        all.insert(all.end(), {static_cast<float>(guess.id), guess.logit, guess.logprob});
      all.insert(all.end(), {row.final.logit, row.final.logprob, static_cast<float>(row.rank)});
    }
  }
  const auto add_halves = [&](const auto& tensor) {  // every bit of a double
    const auto* halves = reinterpret_cast<const float*>(tensor.data());
    all.insert(all.end(), halves, halves + 2 * tensor.size());
  };
  add_halves(reading.direct.heads);
  add_halves(reading.direct.mlp);
  add_halves(reading.direct.total);
  return all;
}

class ModelReading : public ::testing::Test {
 protected:
  ModelReading()
      : file_({.layers = 3, .heads = 6, .kv_heads = 2, .width = 96, .biases = true}),
        model_(Model::load(file_.path())) {
    testing::Numbers numbers(4);  // few different tokens, so that some come again
    for (std::int64_t i = 0; i < kTokens; ++i) ids_.push_back(static_cast<std::int32_t>(numbers.below(30)));
  }

  Reading read(const ReadingRequest& request, std::int64_t chunk = 512) const {
    State state(model_.config());
    ReadingTap tap(model_, request, ids_);
    FeedOptions options;
    options.chunk = chunk;
    options.tap = &tap;
    feed(model_, state, ids_, 0, options);
    return tap.finish(&state);
  }

  // sum_j P_ij factor(i, j) over [l][h][t], in float64 and in plain f32, from the weights that were read.
  template <typename T, typename Factor>
  static std::vector<T> sums(const Reading& r, Factor&& factor) {
    std::vector<T> all;
    for (std::int64_t l = 0; l < r.weights.shape()[0]; ++l) {
      for (std::int64_t h = 0; h < r.weights.shape()[1]; ++h) {
        for (std::int64_t i = 0; i < r.tokens; ++i) {
          T sum = 0;
          for (std::int64_t j = 0; j <= i; ++j)
            sum += static_cast<T>(r.weights(l, h, i, j)) * static_cast<T>(factor(i, j));
          all.push_back(sum);
        }
      }
    }
    return all;
  }
  template <typename Factor>
  static void expect_sums(const Reading& r, Statistic statistic, Factor&& factor) {
    SCOPED_TRACE(std::string(info(statistic).name));
    EXPECT_TRUE(within_law_1(all_of(r.per_row.at(statistic)), sums<float>(r, factor), sums<double>(r, factor)));
  }

  testing::TinyModelFile file_;
  Model model_;
  std::vector<std::int32_t> ids_;
};

}  // namespace regard
