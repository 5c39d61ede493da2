#include "reading/lens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/softmax.h"
#include "model/forward.h"
#include "parallel/parallel_for.h"
#include "tensor/buffer.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kRows = 16;  // whose logits live at a time

float comparable(float logit) { return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit; }

bool is_better(const float* logits, std::int32_t a, std::int32_t b) {
  const float x = comparable(logits[a]), y = comparable(logits[b]);
  return x > y || (x == y && a < b);
}

std::vector<std::int32_t> best(const float* logits, std::int64_t vocabulary, std::int64_t top) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(vocabulary));
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min(top, vocabulary);
  std::partial_sort(ids.begin(), end, ids.end(),
                    [&](std::int32_t a, std::int32_t b) { return is_better(logits, a, b); });
  ids.erase(end, ids.end());
  return ids;
}

LensRow look(const float* logits, std::int64_t vocabulary, std::int64_t top, std::int32_t final) {
  const float lse = log_sum_exp(logits, vocabulary);
  const auto guess = [&](std::int32_t id) { return Guess{id, logits[id], logits[id] - lse}; };
  LensRow row;
  for (const std::int32_t id : best(logits, vocabulary, top)) row.top.push_back(guess(id));
  row.final = guess(final);
  for (std::int32_t id = 0; id < vocabulary; ++id) row.rank += is_better(logits, id, final);
  return row;
}

// body(row, its logits), several rows at once.
template <typename Body>
void for_each_row(const Model& model, View<const float, 2> resid, Body&& body) {
  const std::int64_t rows = resid.shape[0];
  Tensor<float, 2> out({std::min(rows, kRows), model.config().vocabulary});
  for (std::int64_t first = 0; first < rows; first += kRows) {
    const std::int64_t n = std::min(kRows, rows - first);
    logits(model, resid.slice(first, first + n), out.view().slice(0, n));
    parallel_for(n, [&](std::int64_t r, int) { body(first + r, &out(r, 0)); });
  }
}

}  // namespace

std::vector<std::int32_t> first_choices(const Model& model, View<const float, 2> resid) {
  std::vector<std::int32_t> choices(static_cast<std::size_t>(resid.shape[0]));
  for_each_row(model, resid, [&](std::int64_t r, const float* logits) {
    for (std::int32_t id = 1; id < model.config().vocabulary; ++id)
      if (is_better(logits, id, choices[r])) choices[r] = id;
  });
  return choices;
}

std::vector<std::vector<LensRow>> logit_lens(const Model& model, View<const float, 3> resid, std::int64_t top) {
  if (top < 1) throw Error(ErrorCode::usage, fmt::format("{} best tokens cannot be had", top), "ask for at least 1");
  const std::int64_t layers = resid.shape[0];
  const std::vector<std::int32_t> final = first_choices(model, resid[layers - 1]);
  std::vector<std::vector<LensRow>> all(static_cast<std::size_t>(layers), std::vector<LensRow>(final.size()));
  for (std::int64_t l = 0; l < layers; ++l)
    for_each_row(model, resid[l], [&](std::int64_t r, const float* logits) {
      all[l][r] = look(logits, model.config().vocabulary, top, final[r]);
    });
  return all;
}

std::int64_t lens_bytes(const ModelConfig& config, std::int64_t rows) {
  return std::min(rows, kRows) * (config.vocabulary + config.width) * static_cast<std::int64_t>(sizeof(float)) +
         thread_count() * config.vocabulary * static_cast<std::int64_t>(sizeof(std::int32_t));
}

}  // namespace regard
