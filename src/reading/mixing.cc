#include "reading/mixing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/matmul.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard {

MixingTap::MixingTap(const Model& model, std::int64_t tokens, int sequence, std::vector<std::int64_t> layers)
    : model_(model), tokens_(tokens), layers_(std::move(layers)) {
  if (model.config().norm_place == NormPlace::around)
    throw Error(ErrorCode::unsupported,
                fmt::format("mixing ratios of {} are not known: a norm follows its attention", model.config().family));
  if (layers_.empty()) {
    layers_.resize(static_cast<std::size_t>(model.config().layers));
    std::iota(layers_.begin(), layers_.end(), 0);
  }
  ratio_ = Tensor<float, 2>({std::ssize(layers_), tokens});
  std::fill_n(ratio_.data(), ratio_.size(), std::numeric_limits<float>::quiet_NaN());
  pass_.sequence = sequence;
  pass_.head.resize(static_cast<std::size_t>(model.config().heads));
  std::iota(pass_.head.begin(), pass_.head.end(), 0);
}

std::int64_t MixingTap::index_of(std::int64_t layer) const {
  const auto found = std::find(layers_.begin(), layers_.end(), layer);
  return found == layers_.end() ? -1 : found - layers_.begin();
}

bool MixingTap::wants(Site site, std::int64_t layer) const {
  if (index_of(layer) < 0) return false;
  return site == Site::resid_pre || site == Site::v || site == Site::attn_out;
}

void MixingTap::place(std::span<const Row> rows) {
  pass_.row.clear();
  std::int32_t count = 0;
  for (const Row& row : rows) {
    const bool ours = row.sequence == pass_.sequence;
    if (ours && row.position >= tokens_)
      throw Error(ErrorCode::usage,
                  fmt::format("row {} passed, but mixing was planned for {} tokens", row.position, tokens_));
    pass_.row.push_back(ours ? count++ : -1);
  }
}

std::vector<Reader*> MixingTap::readers(std::int64_t layer, std::span<const Row> rows) {
  if (index_of(layer) < 0) return {};
  place(rows);
  self_ = Tensor<float, 2>({model_.config().heads, std::ssize(rows)});
  reader_.aim(pass_, self_.view());
  return {&reader_};
}

void MixingTap::at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) {
  const ModelConfig& c = model_.config();
  const std::int64_t n = std::ssize(rows), E = c.value_dim, C = c.width, group = c.heads / c.kv_heads;
  if (site != Site::attn_out) {
    Tensor<float, 2>& kept = site == Site::v ? value_ : resid_;
    kept = Tensor<float, 2>({n, value.shape[1] * value.shape[2]});
    for (std::int64_t r = 0; r < n; ++r)
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        for (std::int64_t i = 0; i < value.shape[2]; ++i) kept(r, h * value.shape[2] + i) = value(r, h, i);
    return;
  }
  const std::int64_t index = index_of(layer);
  // What each row reads of itself, through W_O.
  Tensor<float, 2> z({n, c.heads * E}), own({n, C});
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t h = 0; pass_.row[r] >= 0 && h < c.heads; ++h)
      for (std::int64_t i = 0; i < E; ++i) z(r, h * E + i) = self_(h, pass_.row[r]) * value_(r, h / group * E + i);
  matmul(model_.layers()[layer].o.weight, z.view(), own.view());
  parallel_for(n, [&](std::int64_t r, int) {
    if (pass_.row[r] < 0) return;
    double mixed = 0, kept = 0;
    for (std::int64_t i = 0; i < C; ++i) {
      const double mix = static_cast<double>(value(r, 0, i)) - own(r, i);
      const double keep = static_cast<double>(own(r, i)) + resid_(r, i);
      mixed += mix * mix;
      kept += keep * keep;
    }
    ratio_(index, rows[r].position) = static_cast<float>(std::sqrt(mixed) / (std::sqrt(mixed) + std::sqrt(kept)));
  });
}

std::int64_t MixingTap::work_bytes(const ModelConfig& c, std::int64_t rows) {
  return rows * static_cast<std::int64_t>(sizeof(float)) *
         (2 * c.width + (c.heads + c.kv_heads) * c.value_dim + c.heads);
}

}  // namespace regard
