#include "intervention/gradient_reading.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attention/forward.h"
#include "attention/read.h"
#include "kernels/softmax.h"
#include "model/forward.h"
#include "parallel/parallel_for.h"
#include "reading/rollout.h"
#include "reading/selection.h"
#include "tensor/error.h"
#include "training/model_pass.h"

namespace regard {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;  // of weights that live at a time

// d metric / d z of every layer.
class HeadGradients final : public GradientTap {
 public:
  explicit HeadGradients(const ModelConfig& config) : layers_(static_cast<std::size_t>(config.layers)) {}
  bool wants(Site site, std::int64_t) const override { return site == Site::z; }
  void at(Site, std::int64_t layer, View<const float, 3> gradient) override {
    Tensor<float, 3>& kept = layers_[layer] = Tensor<float, 3>(gradient.shape);
    for (std::int64_t r = 0; r < gradient.shape[0]; ++r)
      for (std::int64_t h = 0; h < gradient.shape[1]; ++h)
        std::copy_n(&gradient(r, h, 0), gradient.shape[2], &kept(r, h, 0));
  }
  View<const float, 3> of(std::int64_t layer) const { return layers_[layer].view(); }

 private:
  std::vector<Tensor<float, 3>> layers_;
};

// d metric / d logits, [1, V].
Tensor<float, 2> gradient_of_logits(const Metric& metric, std::span<const float> x) {
  Tensor<float, 2> d({1, std::ssize(x)});
  d(0, metric.token) = 1;
  if (metric.kind == MetricKind::diff) d(0, metric.against) = -1;
  if (metric.kind == MetricKind::logit || metric.kind == MetricKind::diff) return d;
  const double lse = log_sum_exp(x.data(), std::ssize(x));
  const double p = metric.kind == MetricKind::prob ? std::exp(static_cast<double>(x[metric.token]) - lse) : 1;
  for (std::int64_t i = 0; i < std::ssize(x); ++i)
    d(0, i) = static_cast<float>(p * (static_cast<double>(d(0, i)) - std::exp(static_cast<double>(x[i]) - lse)));
  return d;
}

}  // namespace

bool has_gradient(MetricKind kind) {
  return kind == MetricKind::logit || kind == MetricKind::logprob || kind == MetricKind::prob ||
         kind == MetricKind::diff;
}

// Of keys that are more than half of what a row reads, of which it has one at most, (z - p v) / (1 - p) would be what
// rounding left of z; such a row reads again without the key.
void add_hidden_key_effects(const Problem& problem, View<const RowSoftmax, 2> softmax, View<const float, 3> d_z,
                            std::span<double> effects) {
  const std::int64_t R = std::ssize(problem.rows), H = problem.q.shape[1], G = problem.kv_heads,
                     E = problem.value_channels, S = std::ssize(effects);
  std::vector<std::int32_t> heads(static_cast<std::size_t>(H));
  std::iota(heads.begin(), heads.end(), 0);
  std::vector<EdgeEdit> again;     // by row and head
  Tensor<double, 2> held({R, H});  // <d_z, z>
  for (std::int64_t first = 0; first < R; first += kRowsAtOnce) {
    std::vector<std::int64_t> some(static_cast<std::size_t>(std::min(kRowsAtOnce, R - first)));
    std::iota(some.begin(), some.end(), first);
    const std::int64_t n = std::ssize(some);
    const Tensor<float, 3> p = weights(problem, softmax, some, heads, 0, S);
    Tensor<double, 3> changes({n, H, S});
    parallel_for(n * H, [&](std::int64_t i, int) {
      const std::int64_t r = i / H, h = i % H, row = first + r;
      const Rows& values = problem.sequences[problem.rows[row].sequence].v;
      std::vector<double> a(static_cast<std::size_t>(S));  // <d_z, v>
      double sum = 0;
      for (std::int64_t s = 0; s < S; ++s) {
        if (p(r, h, s) == 0) continue;  // also where there is no such key
        const auto* v = reinterpret_cast<const float*>(values.row(s) + h / (H / G) * values.head_stride);
        for (std::int64_t e = 0; e < E; ++e) a[s] += static_cast<double>(d_z(row, h, e)) * v[e];
        sum += static_cast<double>(p(r, h, s)) * a[s];
      }
      held(row, h) = sum;
      for (std::int64_t s = 0; s < S; ++s) {
        const double weight = p(r, h, s);
        changes(r, h, s) = weight <= 0.5 ? weight * (sum - a[s]) / (1 - weight) : 0;
      }
    });
    for (std::int64_t r = 0; r < n; ++r)
      for (std::int64_t h = 0; h < H; ++h)
        for (std::int64_t s = 0; s < S; ++s) {
          if (problem.rows[first + r].position == s) continue;
          effects[s] += changes(r, h, s);
          if (p(r, h, s) > 0.5f) again.push_back({first + r, static_cast<std::int32_t>(h), s, s + 1});
        }
  }
  if (again.empty()) return;
  Problem without = problem;
  without.mask.edges = again;
  Tensor<float, 3> z({R, H, E});
  Tensor<RowSoftmax, 2> made({R, H});
  forward(without, z.view(), made.view());
  for (const EdgeEdit& edge : again) {
    double now = 0;
    for (std::int64_t e = 0; e < E; ++e)
      now += static_cast<double>(d_z(edge.row, edge.head, e)) * static_cast<double>(z(edge.row, edge.head, e));
    effects[edge.key_begin] += now - held(edge.row, edge.head);
  }
}

GradientReading read_gradients(const Model& model, std::span<const std::int32_t> ids, const Metric& metric,
                               std::int64_t row) {
  const ModelConfig& c = model.config();
  if (!has_gradient(metric.kind))
    throw Error(ErrorCode::unsupported, "this metric has no gradient to read by",
                "measure logit, logprob, prob or diff");
  row = select(std::vector{row}, std::ssize(ids), "row")[0];
  // Where rows read to the left, later ones do not reach this one.
  const auto seen = ids.first(c.causal ? static_cast<std::size_t>(row) + 1 : ids.size());
  const std::int64_t T = std::ssize(seen), L = c.layers;
  std::vector<Row> rows;
  for (std::int64_t t = 0; t < T; ++t) rows.push_back({seen[t], 0, t});

  ModelPass pass(model, rows, Keep::inputs);
  const Measure measure(model, metric, pass.forward(), row);
  GradientReading reading{.metric = measure.metric(),
                          .base = measure.base(),
                          .gradient_x_input = std::vector<double>(ids.size()),
                          .hidden = std::vector<double>(ids.size())};
  const Tensor<float, 2> d_logits = gradient_of_logits(reading.metric, measure.clean_logits());
  const std::int64_t at[] = {row};
  const Tensor<float, 2> d_row = pass.head_backward(at, d_logits.view(), nullptr);
  Tensor<float, 2> d_resid({T, c.width}), x({T, c.width});
  std::copy_n(d_row.data(), c.width, &d_resid(row, 0));
  HeadGradients d_z(c);
  pass.backward(d_resid.view(), nullptr, &d_z);

  embed(model, rows, x.view());
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t i = 0; i < c.width; ++i)
      reading.gradient_x_input[t] += static_cast<double>(d_resid(t, i)) * x(t, i);

  State state(c, 1, T);
  QueriesTap queries(model);
  feed(model, state, seen, 0, {.tap = &queries, .on_rows = {}});
  const std::span<double> effects(reading.hidden.data(), seen.size());
  for (std::int64_t l = 0; l < L; ++l) {
    std::int64_t passed = 0;  // rows of this layer, pass by pass
    queries.each_pass(state.cache, l, [&](const Problem& problem, View<const RowSoftmax, 2> softmax) {
      const std::int64_t n = std::ssize(problem.rows);
      add_hidden_key_effects(problem, softmax, d_z.of(l).slice(passed, passed + n), effects);
      passed += n;
    });
  }
  return reading;
}

}  // namespace regard
