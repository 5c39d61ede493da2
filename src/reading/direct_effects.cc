#include "reading/direct_effects.h"

#include <algorithm>
#include <cmath>

#include "kernels/dequantize.h"
#include "parallel/parallel_for.h"
#include "reading/request.h"
#include "tensor/error.h"

namespace regard {
namespace {

double dot(const double* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

DirectEffectsTap::DirectEffectsTap(const Model& model, std::vector<std::int64_t> rows, int sequence)
    : model_(model), rows_(std::move(rows)), sequence_(sequence), passed_(rows_.size()) {
  const ModelConfig& c = model.config();
  if (const std::string reason = why_not(Statistic::direct, c); !reason.empty())
    throw Error(ErrorCode::unsupported, fmt::format("direct effects of {} are not known: {}", c.family, reason));
  const std::int64_t R = std::ssize(rows_);
  for (std::int64_t i = 0; i < R; ++i) index_of_.emplace(rows_[i], i);
  embedding_ = Tensor<float, 2>({R, c.width});
  final_ = Tensor<float, 2>({R, c.width});
  z_ = Tensor<float, 3>({c.layers, R, c.heads * c.value_dim});
  attention_ = Tensor<float, 3>({c.layers, R, c.width});
  mlp_ = Tensor<float, 3>({c.layers, R, c.width});
}

bool DirectEffectsTap::wants(Site site, std::int64_t layer) const {
  return site == Site::z || site == Site::attn_out || site == Site::mlp_out ||
         (site == Site::resid_pre && layer == 0) || (site == Site::resid_post && layer + 1 == model_.config().layers);
}

void DirectEffectsTap::at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].sequence != sequence_) continue;
    const auto [begin, end] = index_of_.equal_range(rows[r].position);
    for (auto found = begin; found != end; ++found) {
      const std::int64_t i = found->second;
      passed_[i] = 1;
      float* to = site == Site::z           ? &z_(layer, i, 0)
                  : site == Site::attn_out  ? &attention_(layer, i, 0)
                  : site == Site::mlp_out   ? &mlp_(layer, i, 0)
                  : site == Site::resid_pre ? &embedding_(i, 0)
                                            : &final_(i, 0);
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        for (std::int64_t c = 0; c < value.shape[2]; ++c) *to++ = value(r, h, c);
    }
  }
}

DirectEffects DirectEffectsTap::effects(std::int32_t token, std::optional<std::int32_t> against) const {
  return effects(std::vector<std::int32_t>(rows_.size(), token), against);
}

DirectEffects DirectEffectsTap::effects(std::span<const std::int32_t> tokens,
                                        std::optional<std::int32_t> against) const {
  const ModelConfig& c = model_.config();
  const std::int64_t R = std::ssize(rows_), L = c.layers, H = c.heads;
  if (std::ssize(tokens) != R)
    throw Error(ErrorCode::usage, fmt::format("{} tokens for {} rows", tokens.size(), R), "name one for each row");
  for (std::int64_t i = 0; i < R; ++i)
    if (!passed_[i])
      throw Error(ErrorCode::usage, fmt::format("row {} never passed through the model", rows_[i]),
                  "feed the whole text while the tap is attached");

  DirectEffects e;
  e.embedding = Tensor<double, 1>({R});
  e.heads = Tensor<double, 3>({L, H, R});
  e.attention = Tensor<double, 2>({L, R});
  e.attention_bias = Tensor<double, 2>({L, R});
  e.mlp = Tensor<double, 2>({L, R});
  e.bias = Tensor<double, 1>({R});
  e.total = Tensor<double, 1>({R});
  std::map<std::int32_t, std::vector<std::int64_t>> rows_of;
  for (std::int64_t i = 0; i < R; ++i) rows_of[tokens[i]].push_back(i);
  for (const auto& [token, indices] : rows_of) add(e, indices, token, against);
  return e;
}

void DirectEffectsTap::add(DirectEffects& e, std::span<const std::int64_t> indices, std::int32_t token,
                           std::optional<std::int32_t> against) const {
  const ModelConfig& c = model_.config();
  const std::int64_t L = c.layers, H = c.heads, E = c.value_dim, C = c.width;
  // W_U[a] - W_U[b], then times the norm's weight; the norm's bias times the difference is a constant.
  std::vector<double> difference(static_cast<std::size_t>(C));
  std::vector<float> row(static_cast<std::size_t>(C));
  const auto add_row = [&](std::int32_t id, double sign) {
    if (id < 0 || id >= c.vocabulary)
      throw Error(ErrorCode::bad_input, fmt::format("token id {} is outside the vocabulary of {}", id, c.vocabulary));
    dequantize(model_.head().logits.weight, id, 0, C, row.data());
    for (std::int64_t i = 0; i < C; ++i) difference[i] += sign * row[i];
  };
  add_row(token, 1);
  if (against) add_row(*against, -1);
  const Norm& norm = model_.head().final_norm;
  std::vector<double> direction(static_cast<std::size_t>(C));
  double mean_direction = 0;
  for (std::int64_t i = 0; i < C; ++i) {
    const double weight = norm.weight.empty() ? 1 : norm.weight[i] + (c.norm_weight_plus_one ? 1.0 : 0.0);
    direction[i] = difference[i] * weight;
    mean_direction += direction[i] / static_cast<double>(C);
  }
  if (c.norm == NormKind::layer &&
      !norm.weight.empty())  // a LayerNorm takes the mean out of what comes in: the same as out of the direction
    for (double& d : direction) d -= mean_direction;

  std::vector<double> scale(rows_.size());  // 1 / sigma of each row
  for (const std::int64_t i : indices) {
    double mean = 0, squares = 0;
    for (std::int64_t k = 0; k < C; ++k) mean += final_(i, k) / static_cast<double>(C);
    if (c.norm == NormKind::rms) mean = 0;
    for (std::int64_t k = 0; k < C; ++k) squares += (final_(i, k) - mean) * (final_(i, k) - mean);
    scale[i] = norm.weight.empty() ? 1 : 1 / std::sqrt(squares / static_cast<double>(C) + c.norm_epsilon);
  }
  parallel_for(L, [&](std::int64_t l, int) {
    // W_O^T direction: what a unit of each z channel adds.
    const Matrix& w = model_.layers()[l].o.weight;
    std::vector<double> of_z(static_cast<std::size_t>(H * E));
    std::vector<float> stored(static_cast<std::size_t>(H * E));
    for (std::int64_t k = 0; k < C; ++k) {
      dequantize(w, k, 0, w.cols, stored.data());
      for (std::int64_t j = 0; j < H * E; ++j) of_z[j] += direction[k] * stored[j];
    }
    for (const std::int64_t i : indices) {
      for (std::int64_t h = 0; h < H; ++h) e.heads(l, h, i) = scale[i] * dot(of_z.data() + h * E, &z_(l, i, h * E), E);
      e.attention(l, i) = scale[i] * dot(direction.data(), &attention_(l, i, 0), C);
      if (const std::vector<float>& bias = model_.layers()[l].o.bias; !bias.empty())
        e.attention_bias(l, i) = scale[i] * dot(direction.data(), bias.data(), C);
      e.mlp(l, i) = scale[i] * dot(direction.data(), &mlp_(l, i, 0), C);
    }
  });
  for (const std::int64_t i : indices) {
    e.embedding(i) = scale[i] * dot(direction.data(), &embedding_(i, 0), C);
    if (!norm.bias.empty()) e.bias(i) += dot(difference.data(), norm.bias.data(), C);
    if (const std::vector<float>& bias = model_.head().logits.bias; !bias.empty())
      e.bias(i) += static_cast<double>(bias[token]) - (against ? static_cast<double>(bias[*against]) : 0.0);
    e.total(i) = e.embedding(i) + e.bias(i);
    for (std::int64_t l = 0; l < L; ++l) e.total(i) += e.attention(l, i) + e.mlp(l, i);
  }
}

std::int64_t DirectEffectsTap::bytes_needed(const ModelConfig& c, std::int64_t rows) {
  const std::int64_t kept = 2 * c.width + c.layers * (c.heads * c.value_dim + 2 * c.width);
  const std::int64_t results = 3 + c.layers * (c.heads + 3);
  return rows * (kept * static_cast<std::int64_t>(sizeof(float)) + results * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace regard
