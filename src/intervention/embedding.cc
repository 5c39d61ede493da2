#include "intervention/embedding.h"

#include <algorithm>
#include <cmath>

#include "model/forward.h"
#include "model/layers.h"
#include "tensor/buffer.h"
#include "tensor/error.h"

namespace regard {

std::vector<double> embedding(const Model& model, View<const float, 2> resid) {
  constexpr std::int64_t kRows = 256;  // normed ones that live at a time
  const std::int64_t T = resid.shape[0], C = resid.shape[1];
  std::vector<double> sum(static_cast<std::size_t>(C));
  Tensor<float, 2> normed({std::min(kRows, T), C});
  for (std::int64_t first = 0; first < T; first += kRows) {
    const std::int64_t n = std::min(kRows, T - first);
    apply(model.head().final_norm, model.config(), resid.slice(first, first + n), normed.view().slice(0, n));
    for (std::int64_t r = 0; r < n; ++r)
      for (std::int64_t c = 0; c < C; ++c) sum[c] += normed(r, c);
  }
  for (double& x : sum) x /= static_cast<double>(T);
  return sum;
}

std::vector<double> embedding_of(const Model& model, std::span<const std::int32_t> ids) {
  if (ids.empty()) throw Error(ErrorCode::bad_input, "a text of no tokens has no embedding", "give at least one token");
  Tensor<float, 2> resid({std::ssize(ids), model.config().width});
  State state(model.config(), 1, std::ssize(ids));
  feed(model, state, ids, 0, {.on_rows = [&](std::int64_t first, View<const float, 2> rows) {
         std::copy_n(rows.data, rows.size(), &resid(first, 0));
       }});
  return embedding(model, std::as_const(resid).view());
}

double cosine(std::span<const double> a, std::span<const double> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / (std::sqrt(aa) * std::sqrt(bb));
}

}  // namespace regard
