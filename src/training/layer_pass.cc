#include "training/layer_pass.h"

#include <algorithm>

#include "attention/backward.h"
#include "attention/forward.h"
#include "kernels/activation.h"
#include "kernels/gradients.h"
#include "model/layers.h"
#include "parallel/counter_random.h"
#include "tensor/error.h"
#include "training/linear_gradient.h"

namespace regard {
namespace {

View<float, 2> flat(Tensor<float, 3>& x) { return {x.data(), {x.shape()[0], x.shape()[1] * x.shape()[2]}}; }
View<const float, 2> flat(const Tensor<float, 3>& x) { return {x.data(), {x.shape()[0], x.shape()[1] * x.shape()[2]}}; }
View<const float, 3> one_head(View<const float, 2> x) {
  return {x.data, {x.shape[0], 1, x.shape[1]}, {x.stride[0], x.shape[1], 1}};
}
// Heads as rows of their own: [R, H, D] -> [R H, D].
View<float, 2> head_rows(Tensor<float, 3>& x) { return {x.data(), {x.shape()[0] * x.shape()[1], x.shape()[2]}}; }
View<const float, 2> head_rows(View<const float, 2> x, std::int64_t channels) {
  return {x.data, {x.shape[0] * x.shape[1] / channels, channels}};
}

// Makes room once; the next pass of as many rows uses it again.
template <typename T, int Rank>
T& room(T& tensor, std::array<std::int64_t, Rank> shape) {
  if (tensor.shape() != shape) tensor = T(shape);
  return tensor;
}
Tensor<float, 2>& room2(Tensor<float, 2>& t, std::int64_t rows, std::int64_t channels) {
  return room<Tensor<float, 2>, 2>(t, {rows, channels});
}
Tensor<float, 3>& room3(Tensor<float, 3>& t, std::int64_t rows, std::int64_t heads, std::int64_t channels) {
  return room<Tensor<float, 3>, 3>(t, {rows, heads, channels});
}

void keep(Tensor<float, 2>& to, View<const float, 2> x) {
  room2(to, x.shape[0], x.shape[1]);
  for (std::int64_t r = 0; r < x.shape[0]; ++r) std::copy_n(&x(r, 0), x.shape[1], &to(r, 0));
}

void refuse(const ModelConfig& c, bool has, const char* what) {
  if (has) throw Error(ErrorCode::unsupported, fmt::format("no gradients of {}: {} is not covered", c.family, what));
}

}  // namespace

LayerPass::LayerPass(const Model& model, std::vector<Row> rows, Dropout dropout, std::vector<std::uint8_t> visible)
    : model_(model),
      config_(model.config()),
      rows_(std::move(rows)),
      dropout_(dropout),
      visible_(std::move(visible)),
      state_(config_, 1, std::ssize(rows_)) {
  refuse(config_, config_.mixture.experts > 0, "a mixture of experts");
  refuse(config_, config_.cross_attention, "attention to a source");
  refuse(config_, config_.relative_buckets > 0, "a bias by distance");
  refuse(config_, config_.activation == Activation::clamped_swiglu, "clamped_swiglu");
  for (std::int64_t r = 0; r < std::ssize(rows_); ++r) {
    const Row& row = rows_[r];
    const bool first = r == 0 || row.sequence != rows_[r - 1].sequence;
    if (row.sequence != (r == 0 ? 0 : rows_[r - 1].sequence + (first ? 1 : 0)) ||
        row.position != (first ? 0 : rows_[r - 1].position + 1))
      throw Error(
          ErrorCode::bad_input,
          fmt::format("row {} is at position {} of sequence {}, which does not follow", r, row.position, row.sequence),
          "give whole texts, one after another");
    if (first) begins_.push_back(r);
    positions_.push_back(row.position);
    query_rows_.push_back({row.sequence, 0, row.position});
  }
  begins_.push_back(std::ssize(rows_));
  if (!visible_.empty() && visible_.size() != rows_.size())
    throw Error(ErrorCode::bad_input, fmt::format("{} rows, and {} of which it is said whether they are read",
                                                  rows_.size(), visible_.size()));
}

RotaryTable& LayerPass::rotary(std::int64_t layer) {
  return config_.window[layer] > 0 ? state_.rotary_local : state_.rotary_global;
}

Problem LayerPass::problem(std::int64_t layer, const KeptLayer& kept) {
  Problem problem = attention_problem(model_, layer);
  const std::int64_t sequences = std::ssize(begins_) - 1;
  key_pages_.resize(static_cast<std::size_t>(sequences));
  value_pages_.resize(static_cast<std::size_t>(sequences));
  sequences_.resize(static_cast<std::size_t>(sequences));
  constexpr std::int64_t f = sizeof(float);
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t begin = begins_[s], length = begins_[s + 1] - begin, G = config_.kv_heads;
    key_pages_[s] = reinterpret_cast<const std::byte*>(&kept.k(begin, 0, 0));
    value_pages_[s] = reinterpret_cast<const std::byte*>(&kept.v(begin, 0, 0));
    sequences_[s] = {.length = length,
                     .k = {DType::f32, &key_pages_[s], length, G * config_.head_dim * f, config_.head_dim * f, f},
                     .v = {DType::f32, &value_pages_[s], length, G * config_.value_dim * f, config_.value_dim * f, f},
                     .visible = visible_.empty() ? std::span<const std::uint8_t>()
                                                 : std::span(visible_).subspan(static_cast<std::size_t>(begin),
                                                                               static_cast<std::size_t>(length)),
                     .segment = {}};
  }
  problem.q = kept.q.view();
  problem.rows = query_rows_;
  problem.sequences = sequences_;
  const CounterRandom seeds(RandomUse::dropout, dropout_.seed, 1);
  problem.dropout = {dropout_.probability, seeds.at(static_cast<std::uint64_t>(layer))};
  return problem;
}

// q, k, v and z of what attention reads.
void LayerPass::attention(std::int64_t l, View<const float, 2> in, KeptLayer& kept) {
  const Layer& layer = model_.layers()[l];
  const std::int64_t R = in.shape[0], H = config_.heads, G = config_.kv_heads, D = config_.head_dim,
                     E = config_.value_dim;
  const auto make = [&](const Linear& linear, const Norm& norm, std::int64_t heads, Tensor<float, 3>& x,
                        Tensor<float, 2>& made) {
    apply(linear, in, flat(room3(x, R, heads, D)));
    if (config_.query_key_norm) {
      keep(made, flat(x));
      apply(norm, config_, head_rows(x), head_rows(x));
    }
    if (config_.rotary) rotary(l).rotate(x.view(), positions_.data());
  };
  make(layer.q, layer.query_norm, H, kept.q, kept.q_made);
  make(layer.k, layer.key_norm, G, kept.k, kept.k_made);
  apply(layer.v, in, flat(room3(kept.v, R, G, E)));
  room<Tensor<RowSoftmax, 2>, 2>(kept.softmax, {R, H});
  regard::forward(problem(l, kept), room3(kept.z, R, H, E).view(), kept.softmax.view());
}

// As Blocks::run (model/blocks.cc).
void LayerPass::forward(std::int64_t l, View<float, 2> resid, KeptLayer& kept) {
  const Layer& layer = model_.layers()[l];
  const std::int64_t R = resid.shape[0], C = config_.width;
  const bool around = config_.norm_place == NormPlace::around, after = config_.norm_place == NormPlace::after;
  Tensor<float, 2> normed({R, C}), branch({R, C});
  const auto enter = [&](const Norm& norm) {
    static const Norm kNone;
    apply(after ? kNone : norm, config_, resid, normed.view());
  };
  const auto leave = [&](const Norm& norm, Tensor<float, 2>& before) {
    if (!around) return;
    keep(before, branch.view());
    apply(norm, config_, branch.view(), branch.view());
  };

  keep(kept.x, resid);
  enter(layer.attention_norm);
  attention(l, normed.view(), kept);
  apply(layer.o, flat(kept.z), branch.view());
  leave(layer.post_attention_norm, kept.branch);
  if (config_.parallel_branches) enter(layer.mlp_norm);
  add(branch.view(), resid);
  keep(kept.mid, resid);

  if (after) apply(layer.attention_norm, config_, resid, resid);
  if (!config_.parallel_branches) enter(layer.mlp_norm);
  Tensor<float, 2> hidden({R, config_.hidden});
  apply(layer.mlp.up, normed.view(), room2(kept.up, R, config_.hidden).view());
  if (config_.gated) {
    apply(layer.mlp.gate, normed.view(), room2(kept.gate, R, config_.hidden).view());
    activate_gated(config_.activation, kept.gate.view(), kept.up.view(), hidden.view());
  } else {
    activate(config_.activation, kept.up.view(), hidden.view());
  }
  apply(layer.mlp.down, hidden.view(), branch.view());
  leave(layer.post_mlp_norm, kept.mlp_branch);
  add(branch.view(), resid);
  if (!after) return;
  keep(kept.after, resid);
  apply(layer.mlp_norm, config_, resid, resid);
}

void LayerPass::norm_backward(const Norm& norm, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx,
                              Parameters* gradients) const {
  if (norm.weight.empty()) {
    for (std::int64_t r = 0; r < dy.shape[0]; ++r) std::copy_n(&dy(r, 0), dy.shape[1], &dx(r, 0));
    return;
  }
  float* dw = gradients != nullptr ? gradients->at(norm.name + ".weight").data : nullptr;
  if (config_.norm == NormKind::rms)
    return rms_norm_backward(x, norm.weight.data(), config_.norm_epsilon, config_.norm_weight_plus_one, dy, dx, dw);
  float* db = gradients != nullptr && !norm.bias.empty() ? gradients->at(norm.name + ".bias").data : nullptr;
  layer_norm_backward(x, norm.weight.data(), config_.norm_epsilon, dy, dx, dw, db);
}

// The steps of forward(), from the last to the first.
void LayerPass::backward(std::int64_t l, const KeptLayer& kept, View<float, 2> d_resid, Parameters* gradients,
                         GradientTap* tap) {
  const Layer& layer = model_.layers()[l];
  const std::int64_t R = d_resid.shape[0], C = config_.width;
  const bool around = config_.norm_place == NormPlace::around, after = config_.norm_place == NormPlace::after;
  const auto show = [&](Site site, View<const float, 2> gradient) {
    if (tap != nullptr && tap->wants(site, l)) tap->at(site, l, one_head(gradient));
  };
  static const Norm kNone;
  // What a branch read: the residual normed, or as it was.
  Tensor<float, 2> in({R, C}), d_branch({R, C}), d_out({R, C});
  const auto enter = [&](const Norm& norm, View<const float, 2> x) { apply(norm, config_, x, in.view()); };
  // d_branch, of the branch as it came out of its last linear layer.
  const auto leave = [&](const Norm& norm, const Tensor<float, 2>& before) {
    norm_backward(around ? norm : kNone, before.view(), d_resid, d_branch.view(), gradients);
  };

  show(Site::resid_post, d_resid);
  if (after) norm_backward(layer.mlp_norm, kept.after.view(), d_resid, d_resid, gradients);
  show(Site::mlp_out, d_resid);
  leave(layer.post_mlp_norm, kept.mlp_branch);
  const View<const float, 2> read = config_.parallel_branches ? kept.x.view() : kept.mid.view();
  enter(after ? layer.attention_norm : layer.mlp_norm, read);
  const Tensor<float, 2> d_mlp = mlp_backward(layer, l, kept, in.view(), d_branch.view(), gradients, tap);
  Tensor<float, 2> d_parallel;  // what goes past attention straight to the input
  if (after) {
    add(d_mlp.view(), d_resid);
    norm_backward(layer.attention_norm, kept.mid.view(), d_resid, d_resid, gradients);
  } else {
    norm_backward(layer.mlp_norm, read, d_mlp.view(), d_out.view(), gradients);
    if (config_.parallel_branches)
      keep(d_parallel, d_out.view());
    else
      add(d_out.view(), d_resid);
  }

  show(Site::resid_mid, d_resid);
  show(Site::attn_out, d_resid);
  leave(layer.post_attention_norm, kept.branch);
  Tensor<float, 2> dz({R, config_.heads * config_.value_dim});
  regard::backward(layer.o, flat(kept.z), d_branch.view(), dz.view(), gradients);
  enter(after ? kNone : layer.attention_norm, kept.x.view());
  const Tensor<float, 2> d_read = attention_backward(l, kept, in.view(), dz.view(), gradients, tap);
  norm_backward(after ? kNone : layer.attention_norm, kept.x.view(), d_read.view(), d_out.view(), gradients);
  add(d_out.view(), d_resid);
  if (d_parallel.size() > 0) add(d_parallel.view(), d_resid);
  show(Site::resid_pre, d_resid);
}

Tensor<float, 2> LayerPass::mlp_backward(const Layer& layer, std::int64_t l, const KeptLayer& kept,
                                         View<const float, 2> in, View<const float, 2> d_branch, Parameters* gradients,
                                         GradientTap* tap) {
  const std::int64_t R = in.shape[0], F = config_.hidden;
  Tensor<float, 2> hidden({R, F}), d_hidden({R, F}), d_in({R, in.shape[1]});
  if (config_.gated)
    activate_gated(config_.activation, kept.gate.view(), kept.up.view(), hidden.view());
  else
    activate(config_.activation, kept.up.view(), hidden.view());
  regard::backward(layer.mlp.down, hidden.view(), d_branch, d_hidden.view(), gradients);
  if (tap != nullptr && tap->wants(Site::mlp_post, l)) tap->at(Site::mlp_post, l, one_head(d_hidden.view()));
  if (!config_.gated) {
    activate_backward(config_.activation, kept.up.view(), d_hidden.view(), d_hidden.view());
    regard::backward(layer.mlp.up, in, d_hidden.view(), d_in.view(), gradients);
    return d_in;
  }
  Tensor<float, 2>& d_gate = hidden;
  activate_gated_backward(config_.activation, kept.gate.view(), kept.up.view(), d_hidden.view(), d_gate.view(),
                          d_hidden.view());
  Tensor<float, 2> d_more({R, in.shape[1]});
  regard::backward(layer.mlp.up, in, d_hidden.view(), d_in.view(), gradients);
  regard::backward(layer.mlp.gate, in, d_gate.view(), d_more.view(), gradients);
  add(d_more.view(), d_in.view());
  return d_in;
}

Tensor<float, 2> LayerPass::attention_backward(std::int64_t l, const KeptLayer& kept, View<const float, 2> in,
                                               View<float, 2> dz, Parameters* gradients, GradientTap* tap) {
  const Layer& layer = model_.layers()[l];
  const std::int64_t R = in.shape[0], H = config_.heads, E = config_.value_dim, D = config_.head_dim;
  const auto show = [&](Site site, View<const float, 3> gradient) {
    if (tap != nullptr && tap->wants(site, l)) tap->at(site, l, gradient);
  };
  const View<const float, 3> d_z(dz.data, {R, H, E});
  show(Site::z, d_z);
  Tensor<float, 3> dq({R, H, D}), dk({R, config_.kv_heads, D}), dv({R, config_.kv_heads, E});
  std::vector<View<float, 3>> to_keys, to_values;  // of each sequence
  for (std::size_t s = 0; s + 1 < begins_.size(); ++s) {
    to_keys.push_back(dk.view().slice(begins_[s], begins_[s + 1]));
    to_values.push_back(dv.view().slice(begins_[s], begins_[s + 1]));
  }
  Tensor<float, 1> d_sinks({layer.sinks.empty() || gradients == nullptr ? 0 : H});
  regard::backward(problem(l, kept), kept.z.view(), kept.softmax.view(), d_z,
                   {.d_q = dq.view(),
                    .d_k = to_keys,
                    .d_v = to_values,
                    .d_bias = {},
                    .d_sinks = d_sinks.size() > 0 ? d_sinks.view() : View<float, 1>()});
  if (d_sinks.size() > 0)
    add(View<const float, 2>(d_sinks.data(), {1, H}), gradients->at(fmt::format("blk.{}.attn_sinks.weight", l)));
  show(Site::v, dv.view());

  Tensor<float, 2> d_in({R, in.shape[1]}), d_more({R, in.shape[1]});
  const auto go_back = [&](const Linear& linear, const Norm& norm, Tensor<float, 3>& d, const Tensor<float, 2>& made,
                           Site rotated, Site site, View<float, 2> to) {
    show(rotated, d.view());
    if (config_.rotary) rotary(l).rotate_gradient(d.view(), positions_.data());
    show(site, d.view());
    if (config_.query_key_norm) norm_backward(norm, head_rows(made.view(), D), head_rows(d), head_rows(d), gradients);
    regard::backward(linear, in, flat(d), to, gradients);
  };
  go_back(layer.q, layer.query_norm, dq, kept.q_made, Site::rot_q, Site::q, d_in.view());
  go_back(layer.k, layer.key_norm, dk, kept.k_made, Site::rot_k, Site::k, d_more.view());
  add(d_more.view(), d_in.view());
  regard::backward(layer.v, in, flat(dv), d_more.view(), gradients);
  add(d_more.view(), d_in.view());
  return d_in;
}

}  // namespace regard
