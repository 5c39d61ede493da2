#include "reading/lens.h"

#include <algorithm>
#include <numeric>

#include "kernels/softmax.h"
#include "model/forward.h"
#include "parallel/parallel_for.h"
#include "tensor/buffer.h"
#include "tensor/error.h"

namespace regard {
namespace {

std::vector<Guess> best(const float* logits, std::int64_t vocabulary, std::int64_t top) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(vocabulary));
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min(top, vocabulary);
  std::partial_sort(ids.begin(), end, ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  const float lse = log_sum_exp(logits, vocabulary);
  std::vector<Guess> guesses;
  for (auto id = ids.begin(); id != end; ++id) guesses.push_back({*id, logits[*id], logits[*id] - lse});
  return guesses;
}

}  // namespace

std::vector<std::vector<std::vector<Guess>>> logit_lens(const Model& model, View<const float, 3> resid,
                                                        std::int64_t top) {
  constexpr std::int64_t kRows = 16;
  if (top < 1) throw Error(ErrorCode::usage, fmt::format("{} best tokens cannot be had", top), "ask for at least 1");
  const std::int64_t layers = resid.shape[0], rows = resid.shape[1], V = model.config().vocabulary;
  Tensor<float, 2> out({std::min(rows, kRows), V});
  std::vector<std::vector<std::vector<Guess>>> all;
  for (std::int64_t l = 0; l < layers; ++l) {
    all.emplace_back(static_cast<std::size_t>(rows));
    for (std::int64_t first = 0; first < rows; first += kRows) {
      const std::int64_t n = std::min(kRows, rows - first);
      logits(model, resid[l].slice(first, first + n), out.view().slice(0, n));
      parallel_for(n, [&](std::int64_t r, int) { all[l][first + r] = best(&out(r, 0), V, top); });
    }
  }
  return all;
}

}  // namespace regard
