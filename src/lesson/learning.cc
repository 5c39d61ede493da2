#include "lesson/learning.h"

namespace regard {
namespace {

SmallMatrix times(const SmallMatrix& a, const SmallMatrix& b) {
  SmallMatrix result{a.rows, b.columns, std::vector<double>(static_cast<std::size_t>(a.rows * b.columns))};
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j)
      for (std::int64_t k = 0; k < a.columns; ++k) result(i, j) += a(i, k) * b(k, j);
  return result;
}

SmallMatrix turned(const SmallMatrix& a) {
  SmallMatrix result{a.columns, a.rows, std::vector<double>(a.items.size())};
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
  return result;
}

SmallMatrix scaled(SmallMatrix a, double factor) {
  for (double& item : a.items) item *= factor;
  return a;
}

double half_square(const SmallMatrix& difference) {
  double sum = 0;
  for (const double item : difference.items) sum += item * item;
  return sum / 2;
}

SmallMatrix less(SmallMatrix a, const SmallMatrix& b, double factor = 1) {
  for (std::size_t i = 0; i < a.items.size(); ++i) a.items[i] -= factor * b.items[i];
  return a;
}

}  // namespace

double half_squared_distance(const SmallMatrix& a, const SmallMatrix& b) { return half_square(less(a, b)); }

double loss_of(const SmallHead& head, const SmallMatrix& target) {
  return half_squared_distance(run(head).outputs, target);
}

HeadGradients gradients(const SmallHead& head, const SmallMatrix& target) {
  const SmallHeadResult forward = run(head);
  const SmallMatrix q = times(head.xq, head.wq), k = times(head.xk, head.wk), v = times(head.xv, head.wv);
  const SmallMatrix& p = forward.weights;
  HeadGradients back;
  back.output = forward.outputs;
  back.d_output = less(forward.outputs, target);
  back.loss = half_square(back.d_output);
  // the weighted sum
  back.d_weights = times(back.d_output, turned(v));
  back.d_v = times(turned(p), back.d_output);
  // the softmax
  double mean = 0;
  for (std::int64_t j = 0; j < p.columns; ++j) mean += p(0, j) * back.d_weights(0, j);
  back.d_scores = p;
  for (std::int64_t j = 0; j < p.columns; ++j) back.d_scores(0, j) *= back.d_weights(0, j) - mean;
  // the dot product
  const double scale = head.scale / head.temperature;
  back.d_q = scaled(times(back.d_scores, k), scale);
  back.d_k = scaled(times(turned(back.d_scores), q), scale);
  // the three projections
  back.d_wq = times(turned(head.xq), back.d_q);
  back.d_wk = times(turned(head.xk), back.d_k);
  back.d_wv = times(turned(head.xv), back.d_v);
  return back;
}

SmallHead stepped(const SmallHead& head, const HeadGradients& back, double rate) {
  SmallHead result = head;
  result.wq = less(result.wq, back.d_wq, rate);
  result.wk = less(result.wk, back.d_wk, rate);
  result.wv = less(result.wv, back.d_wv, rate);
  return result;
}

}  // namespace regard
