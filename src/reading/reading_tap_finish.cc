// What a reading holds when the last row has passed.

#include <algorithm>
#include <utility>

#include "reading/exact_sum.h"
#include "reading/exact_sums.h"
#include "reading/reading_tap.h"
#include "reading/replay.h"
#include "reading/rollout.h"
#include "tensor/error.h"

namespace regard {
void ReadingTap::take_means() {
  const std::int64_t L = std::ssize(reading_.request.layers), H = std::ssize(reading_.request.heads);
  for (const auto& [statistic, values] : reading_.per_row) {
    if (statistic == Statistic::lse) continue;
    const auto counts = [&, statistic = statistic](std::int64_t t) {
      if (!rows_->passed(t)) return false;
      if (statistic == Statistic::previous) return t > 0;
      if (statistic == Statistic::duplicate || statistic == Statistic::induction) return !places_.earlier(t).empty();
      return true;
    };
    Tensor<float, 2>& mean = reading_.mean[statistic] = Tensor<float, 2>({L, H});
    for (std::int64_t l = 0; l < L; ++l) {
      for (std::int64_t h = 0; h < H; ++h) {
        double sum = 0, n = 0;
        for (std::int64_t t = 0; t < reading_.tokens; ++t)
          if (counts(t)) sum += values(l, h, t), n += 1;
        mean(l, h) = n > 0 ? static_cast<float>(sum / n) : kNotRead;
      }
    }
  }
}

// The exact sums, rounded to f32 once.
void ReadingTap::take_sums() {
  const std::int64_t L = std::ssize(reading_.request.layers), H = std::ssize(reading_.request.heads);
  const std::int64_t T = reading_.tokens;
  if (column_sums_.size() > 0) {
    reading_.column_sum = Tensor<float, 3>({L, H, T});
    for (std::int64_t i = 0; i < column_sums_.size(); ++i)
      reading_.column_sum.data()[i] = static_cast<float>(from_fixed(column_sums_.data()[i]));
    column_sums_ = {};
  }
  if (reading_.request.has(Statistic::distances)) {
    reading_.distance_edges = log2_edges(T);
    const std::int64_t bins = std::ssize(reading_.distance_edges) - 1;
    const bool both_sides = !model_.config().causal;
    const std::int64_t zero = both_sides ? T - 1 : 0;  // where the reader put distance 0
    reading_.distances = Tensor<float, 3>({L, H, bins});
    for (std::int64_t l = 0; l < L; ++l) {
      for (std::int64_t h = 0; h < H; ++h) {
        for (std::int64_t b = 0; b < bins; ++b) {
          std::int64_t sum = 0;
          for (std::int64_t o = reading_.distance_edges[b]; o < reading_.distance_edges[b + 1]; ++o)
            add_fixed(sum, diagonal_sums_(l, h, zero + o));
          for (std::int64_t o = reading_.distance_edges[b]; both_sides && o < reading_.distance_edges[b + 1]; ++o)
            if (o > 0) add_fixed(sum, diagonal_sums_(l, h, zero - o));
          reading_.distances(l, h, b) = static_cast<float>(from_fixed(sum));
        }
      }
    }
    diagonal_sums_ = {};
  }
  if (reading_.request.has(Statistic::copying)) {
    const std::int64_t rows = rows_->passed_below(reading_.tokens - 1);  // the last row has no next token
    reading_.copying = Tensor<float, 2>({L, H});
    for (std::int64_t i = 0; i < copies_.size(); ++i)
      reading_.copying.data()[i] =
          rows > 0 ? static_cast<float>(static_cast<double>(copies_.data()[i]) / static_cast<double>(rows)) : kNotRead;
  }
}

// Weights and sums of them, times how far a unit of weight on the key moves the residual.
void ReadingTap::take_norm_weighted() {
  const View<const float, 3> norms = std::as_const(reading_.value_norm).view();
  if (reading_.request.has(Statistic::norm_weighted_column_sum)) {
    Tensor<float, 3>& sums = reading_.norm_weighted_column_sum = Tensor<float, 3>(norms.shape);
    for (std::int64_t i = 0; i < sums.size(); ++i)
      sums.data()[i] = reading_.column_sum.data()[i] * reading_.value_norm.data()[i];
  }
  if (!reading_.request.has(Statistic::norm_weighted)) return;
  const View<const float, 4> weights = std::as_const(reading_.weights).view();
  Tensor<float, 4> moved(weights.shape);
  for (std::int64_t l = 0; l < weights.shape[0]; ++l)
    for (std::int64_t h = 0; h < weights.shape[1]; ++h)
      for (std::int64_t r = 0; r < weights.shape[2]; ++r)
        for (std::int64_t s = 0; s < weights.shape[3]; ++s)  // a key that no row could read has no norm: 0 of it is 0
          moved(l, h, r, s) = weights(l, h, r, s) == 0 ? 0.0f : weights(l, h, r, s) * norms(l, h, s);
  reading_.norm_weighted = std::move(moved);
}

// What the chosen rows say next, on the way and through which parts.
void ReadingTap::take_answers() {
  const ReadingRequest& request = reading_.request;
  if (request.has(Statistic::lens))
    reading_.lens = logit_lens(model_, std::as_const(reading_.resid).view(), request.candidates);
  if (!request.has(Statistic::direct)) return;
  reading_.direct_token = request.token ? std::vector<std::int32_t>(request.rows.size(), *request.token)
                                        : first_choices(model_, direct_->final_residual());
  reading_.direct = direct_->effects(reading_.direct_token, request.against);
  direct_.reset();
}

void ReadingTap::take_flow(State* state) {
  if (!flow_) return;
  if (state == nullptr)
    throw Error(ErrorCode::usage, "flow needs the values of all rows, and was not told in which state they are",
                "finish with the state");
  reading_.flow = flow_->flow(state->cache);
  flow_.reset();
}

void ReadingTap::take_rollout(State* state, Tap* watch, Tap* edits) {
  if (!reading_.request.has(Statistic::rollout)) return;
  if (state == nullptr)
    throw Error(ErrorCode::usage, "rollout runs the layers again, and was not told in which state they ran",
                "finish with the state");
  Replay replay(model_, *state, tokens_, reading_.request.sequence, {.watch = watch, .edits = edits});
  reading_.rollout = rollout(model_, replay, reading_.tokens, reading_.request.rows);
}

void ReadingTap::drop_what_was_not_asked() {
  const ReadingRequest& request = reading_.request;
  if (!request.has(Statistic::weights)) reading_.weights = {};
  if (!request.has(Statistic::value_norm)) reading_.value_norm = {};
  if (!request.has(Statistic::column_sum)) reading_.column_sum = {};
  if (!request.resid) reading_.resid = {};
}

Reading ReadingTap::finish(State* state, Tap* watch, Tap* edits) {
  rows_->check_chosen(reading_.request);
  take_means();
  take_sums();
  attached_.clear();  // with the memory that readers work in
  norms_.reset();
  if (mixing_) reading_.mixing = mixing_->take_ratio();
  mixing_.reset();
  take_norm_weighted();
  take_answers();
  drop_what_was_not_asked();
  take_flow(state);
  take_rollout(state, watch, edits);
  return std::move(reading_);
}

}  // namespace regard
