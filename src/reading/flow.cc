#include "reading/flow.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/matmul.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kPositions = 512;  // whose parts live at a time

// max(|y|_1 - |y - part|_1, 0): term by term, so that little cancels.
double nearness(const float* y, const float* part, std::int64_t channels) {
  double sum = 0;
  for (std::int64_t i = 0; i < channels; ++i)
    sum += std::fabs(double{y[i]}) - std::fabs(double{y[i]} - double{part[i]});
  return std::max(sum, 0.0);
}

}  // namespace

FlowTap::FlowTap(const Model& model, std::int64_t tokens, std::vector<std::int64_t> layers,
                 std::vector<std::int64_t> rows, int sequence)
    : model_(model), layers_(std::move(layers)), rows_(std::move(rows)) {
  const ModelConfig& c = model.config();
  if (c.norm_place == NormPlace::around)
    throw Error(ErrorCode::unsupported,
                fmt::format("information flow of {} is not known: a norm follows its attention", c.family));
  const std::int64_t L = std::ssize(layers_), R = std::ssize(rows_);
  pass_.sequence = sequence;
  pass_.head.resize(static_cast<std::size_t>(c.heads));
  std::iota(pass_.head.begin(), pass_.head.end(), 0);
  row_index_.assign(static_cast<std::size_t>(tokens), -1);
  for (std::int64_t r = 0; r < R; ++r) row_index_[rows_[r]] = static_cast<std::int32_t>(r);
  weights_ = Tensor<float, 4>({L, c.heads, R, tokens});
  before_ = Tensor<float, 3>({L, R, c.width});
  after_ = Tensor<float, 3>({L, R, c.width});
}

std::int64_t FlowTap::index_of(std::int64_t layer) const {
  const auto found = std::find(layers_.begin(), layers_.end(), layer);
  return found == layers_.end() ? -1 : found - layers_.begin();
}

bool FlowTap::wants(Site site, std::int64_t layer) const {
  return (site == Site::resid_pre || site == Site::resid_mid) && index_of(layer) >= 0;
}

void FlowTap::at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) {
  Tensor<float, 3>& kept = site == Site::resid_pre ? before_ : after_;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].sequence != pass_.sequence || row_index_[rows[r].position] < 0) continue;
    for (std::int64_t c = 0; c < value.shape[2]; ++c)
      kept(index_of(layer), row_index_[rows[r].position], c) = value(r, 0, c);
  }
}

std::vector<Reader*> FlowTap::readers(std::int64_t layer, std::span<const Row> rows) {
  if (index_of(layer) < 0) return {};
  pass_.row.clear();
  for (const Row& row : rows) pass_.row.push_back(row.sequence == pass_.sequence ? row_index_[row.position] : -1);
  reader_.aim(pass_, weights_.view()[index_of(layer)]);
  return {&reader_};
}

Flow FlowTap::flow(KeyValueCache& cache) const {
  const ModelConfig& c = model_.config();
  const std::int64_t H = c.heads, E = c.value_dim, C = c.width, group = H / c.kv_heads, T = std::ssize(row_index_);
  Flow flow;
  flow.positions = Tensor<float, 3>({std::ssize(layers_), std::ssize(rows_), T});
  flow.residual = Tensor<float, 2>({std::ssize(layers_), std::ssize(rows_)});
  std::vector<double> near(static_cast<std::size_t>(T));
  Tensor<float, 2> mixed({std::min(kPositions, T), H * E}), moved({std::min(kPositions, T), C});
  for (std::int64_t l = 0; l < std::ssize(layers_); ++l) {
    for (std::int64_t r = 0; r < std::ssize(rows_); ++r) {
      const std::int64_t seen = c.causal ? rows_[r] + 1 : T;
      double sum = 0;
      for (std::int64_t first = 0; first < seen; first += kPositions) {
        const std::int64_t n = std::min(kPositions, seen - first);
        parallel_for(n, [&](std::int64_t j, int) {
          const float* v = cache.value(pass_.sequence, layers_[l], first + j);
          for (std::int64_t h = 0; h < H; ++h)
            for (std::int64_t e = 0; e < E; ++e)
              mixed(j, h * E + e) = weights_(l, h, r, first + j) * v[h / group * E + e];
        });
        matmul(model_.layers()[layers_[l]].o.weight, std::as_const(mixed).view().slice(0, n), moved.view().slice(0, n));
        parallel_for(n, [&](std::int64_t j, int) { near[first + j] = nearness(&after_(l, r, 0), &moved(j, 0), C); });
      }
      for (std::int64_t j = 0; j < seen; ++j) sum += near[j];
      const double own = nearness(&after_(l, r, 0), &before_(l, r, 0), C);
      sum += own;
      if (!(sum > 0)) continue;
      for (std::int64_t j = 0; j < seen; ++j) flow.positions(l, r, j) = static_cast<float>(near[j] / sum);
      flow.residual(l, r) = static_cast<float>(own / sum);
    }
  }
  return flow;
}

std::int64_t FlowTap::bytes_needed(const ModelConfig& c, std::int64_t tokens, std::int64_t layers, std::int64_t rows) {
  const std::int64_t kept = layers * rows * ((c.heads + 1) * tokens + 2 * c.width + 1);
  const std::int64_t work = std::min(kPositions, tokens) * (c.heads * c.value_dim + c.width) + 2 * tokens;
  return (kept + work) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace regard
