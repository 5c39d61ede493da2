#include "training/model_pass.h"

#include <algorithm>
#include <utility>

#include "kernels/activation.h"
#include "kernels/gradients.h"
#include "model/forward.h"
#include "model/layers.h"
#include "tensor/error.h"
#include "training/linear_gradient.h"

namespace regard {
namespace {

// Rows whose logits live at a time. A constant: sums over rows are cut here.
constexpr std::int64_t kLogitRows = 256;

void require_plain(const ModelConfig& c) {
  const char* what = c.embedding_width != c.width ? "a projection of the embedding"
                     : c.head_transform           ? "a transform before the logits"
                     : c.embedding_norm           ? "a norm behind the embedding"
                                                  : nullptr;
  if (what != nullptr)
    throw Error(ErrorCode::unsupported, fmt::format("no gradients of {}: {} is not covered", c.family, what));
}

}  // namespace

ModelPass::ModelPass(const Model& model, std::vector<Row> rows, Keep keep, Dropout dropout,
                     std::vector<std::uint8_t> visible)
    : model_(model),
      config_(model.config()),
      keep_(keep),
      layer_pass_(model, std::move(rows), dropout, std::move(visible)) {
  require_plain(config_);
  kept_.resize(static_cast<std::size_t>(config_.layers));
  resid_ = Tensor<float, 2>({std::ssize(layer_pass_.rows()), config_.width});
}

View<const float, 2> ModelPass::forward() {
  for (const Row& row : rows())
    if (row.token < 0 || row.token >= config_.vocabulary)
      throw Error(ErrorCode::bad_input,
                  fmt::format("token id {} is outside the vocabulary of {}", row.token, config_.vocabulary));
  embed(model_, rows(), resid_.view());
  KeptLayer passing;
  for (std::int64_t l = 0; l < config_.layers; ++l) {
    layer_pass_.forward(l, resid_.view(), keep_ == Keep::everything ? kept_[l] : passing);
    if (keep_ == Keep::inputs) kept_[l].x = std::exchange(passing.x, {});
  }
  return resid_.view();
}

Tensor<float, 2> ModelPass::head_backward(std::span<const std::int64_t> at, View<const float, 2> d_logits,
                                          Parameters* gradients) {
  const std::int64_t n = std::ssize(at), C = config_.width, V = config_.vocabulary;
  const Head& head = model_.head();
  Tensor<float, 2> x({n, C}), normed({n, C}), d_normed({n, C}), d({n, V});
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy_n(&resid_(at[i], 0), C, &x(i, 0));
    std::copy_n(&d_logits(i, 0), V, &d(i, 0));
  }
  apply(head.final_norm, config_, x.view(), normed.view());
  if (config_.head_scale != 1) scale(config_.head_scale, normed.view());
  if (config_.logit_softcap > 0) {
    Tensor<float, 2> y({n, V});
    logits(model_, x.view(), y.view());
    for (std::int64_t i = 0; i < d.size(); ++i) {
      const float capped = y.data()[i] / config_.logit_softcap;
      d.data()[i] *= 1 - capped * capped;
    }
  }
  matmul(turned(head.logits.weight).view(), d.view(), d_normed.view());
  if (gradients != nullptr) {
    add_outer(d.view(), normed.view(), gradients->at(config_.tied_head ? "token_embd.weight" : "output.weight"));
    if (!head.logits.bias.empty()) add_column_sums(d.view(), gradients->at("output.bias").data);
  }
  if (config_.head_scale != 1) scale(config_.head_scale, d_normed.view());
  const Norm& norm = head.final_norm;
  if (norm.weight.empty()) return d_normed;
  float* dw = gradients != nullptr ? gradients->at(norm.name + ".weight").data : nullptr;
  float* db = gradients != nullptr && !norm.bias.empty() ? gradients->at(norm.name + ".bias").data : nullptr;
  if (config_.norm == NormKind::rms)
    rms_norm_backward(x.view(), norm.weight.data(), config_.norm_epsilon, config_.norm_weight_plus_one, d_normed.view(),
                      d_normed.view(), dw);
  else
    layer_norm_backward(x.view(), norm.weight.data(), config_.norm_epsilon, d_normed.view(), d_normed.view(), dw, db);
  return d_normed;
}

double ModelPass::loss(std::span<const std::int32_t> targets, Parameters* gradients, GradientTap* tap) {
  const std::int64_t R = std::ssize(rows()), C = config_.width, V = config_.vocabulary;
  if (std::ssize(targets) != R)
    throw Error(ErrorCode::bad_input, fmt::format("{} rows and {} targets", R, targets.size()));
  std::vector<std::int64_t> asked;
  for (std::int64_t r = 0; r < R; ++r)
    if (targets[r] >= 0) asked.push_back(r);
  if (asked.empty()) throw Error(ErrorCode::bad_input, "no row has a target");
  const float weight = 1.0f / static_cast<float>(asked.size());
  const bool back = gradients != nullptr || tap != nullptr;
  Tensor<float, 2> d_resid({R, C});
  double sum = 0;
  for (std::int64_t begin = 0; begin < std::ssize(asked); begin += kLogitRows) {
    const std::int64_t n = std::min(kLogitRows, std::ssize(asked) - begin);
    const std::span<const std::int64_t> at(&asked[begin], static_cast<std::size_t>(n));
    Tensor<float, 2> x({n, C}), y({n, V});
    std::vector<std::int32_t> wanted;
    std::vector<float> losses(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      std::copy_n(&resid_(at[i], 0), C, &x(i, 0));
      wanted.push_back(targets[at[i]]);
    }
    logits(model_, x.view(), y.view());
    cross_entropy(y.view(), wanted, weight, losses, y.view());
    for (const float loss : losses) sum += loss;
    if (!back) continue;
    const Tensor<float, 2> d = head_backward(at, y.view(), gradients);
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(&d(i, 0), C, &d_resid(at[i], 0));
  }
  if (back) backward(d_resid.view(), gradients, tap);
  return sum / static_cast<double>(asked.size());
}

void ModelPass::backward(View<float, 2> d_resid, Parameters* gradients, GradientTap* tap) {
  KeptLayer again;
  for (std::int64_t l = config_.layers - 1; l >= 0; --l) {
    if (keep_ == Keep::everything) {
      layer_pass_.backward(l, kept_[l], d_resid, gradients, tap);
      continue;
    }
    Tensor<float, 2> resid({d_resid.shape[0], d_resid.shape[1]});
    std::copy_n(kept_[l].x.data(), resid.size(), resid.data());
    layer_pass_.forward(l, resid.view(), again);
    layer_pass_.backward(l, again, d_resid, gradients, tap);
  }
  if (gradients != nullptr) embedding_backward(d_resid, *gradients);
}

// Each row of the tables gets what its rows got, by row: one chain per number.
void ModelPass::embedding_backward(View<const float, 2> d_resid, Parameters& gradients) const {
  const std::int64_t R = d_resid.shape[0];
  const auto add_to = [](View<float, 2> table, std::int64_t index, View<const float, 2> row) {
    add(row, table.slice(index, index + 1));
  };
  if (config_.position_table && !config_.sinusoidal) {
    const View<float, 2> table = gradients.at("position_embd.weight");
    for (std::int64_t r = 0; r < R; ++r)
      add_to(table, rows()[r].position + config_.position_offset, d_resid.slice(r, r + 1));
  }
  if (!model_.embedding().type.empty()) add_column_sums(d_resid, gradients.at("token_types.weight").data);
  Tensor<float, 2> scaled({R, config_.width});
  add(d_resid, scaled.view());
  if (config_.embedding_scale != 1) scale(config_.embedding_scale, scaled.view());
  const View<float, 2> table = gradients.at("token_embd.weight");
  for (std::int64_t r = 0; r < R; ++r) add_to(table, rows()[r].token, std::as_const(scaled).view().slice(r, r + 1));
}

}  // namespace regard
