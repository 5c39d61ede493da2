#include "lesson/exploration.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/rotary.h"
#include "lesson/attend.h"
#include "lesson/learning.h"
#include "tensor/error.h"

namespace regard {
namespace {

void set(SmallHead& head, const Slider::Target& target, double value) {
  const auto place = static_cast<std::size_t>(target.row);
  if (target.what == "temperature")
    head.temperature = value;
  else if (target.what == "key_scale")
    head.key_scale = value;
  else if (target.what == "causal")
    head.causal = value != 0;
  else if (target.what == "rate")
    head.rate = value;
  else if (target.what == "query_positions")
    head.query_positions.at(place) += value;
  else if (target.what == "key_positions")
    head.key_positions.at(place) += value;
  else if (target.what == "xq")
    head.xq(target.row, target.column) = value;
  else if (target.what == "xk")
    head.xk(target.row, target.column) = value;
  else if (target.what == "xv")
    head.xv(target.row, target.column) = value;
  else
    throw Error(ErrorCode::bad_input, fmt::format("a slider cannot set \"{}\"", target.what));
}

void rotate(Tensor<float, 2>& x, const std::vector<double>& positions) {
  const std::int64_t rows = x.shape()[0], channels = x.shape()[1];
  const std::vector<std::int64_t> whole(positions.begin(), positions.end());
  RotaryConfig config;
  config.dim = channels;
  RotaryTable table(config, 1);
  table.rotate(View<float, 3>(x.data(), {rows, 1, channels}), whole.data());
}

SmallMatrix to_matrix(View<const float, 2> values) {
  SmallMatrix result{values.shape[0], values.shape[1], {}};
  for (std::int64_t r = 0; r < values.shape[0]; ++r)
    for (std::int64_t c = 0; c < values.shape[1]; ++c) result.items.push_back(values(r, c));
  return result;
}

}  // namespace

SmallHead moved(const SmallHead& head, const std::vector<Slider>& sliders, const std::vector<double>& settings) {
  SmallHead result = head;
  for (std::size_t i = 0; i < sliders.size(); ++i)
    for (const Slider::Target& target : sliders[i].targets) set(result, target, settings.at(i) * target.factor);
  return result;
}

SmallMatrix key_weights(const SmallHead& head) {
  SmallMatrix wk = head.wk;
  for (double& item : wk.items) item *= head.key_scale;
  return wk;
}

SmallHeadResult run(const SmallHead& given) {
  SmallHead head = given;
  if (head.rate != 0) {
    head.rate = 0;
    head = stepped(head, gradients(head, head.target), given.rate);
  }
  Tensor<float, 2> q = project(to_tensor(head.xq).view(), to_tensor(head.wq).view());
  Tensor<float, 2> k = project(to_tensor(head.xk).view(), to_tensor(key_weights(head)).view());
  const Tensor<float, 2> v = project(to_tensor(head.xv).view(), to_tensor(head.wv).view());
  if (head.rotary) {
    rotate(q, head.query_positions);
    rotate(k, head.key_positions);
  }
  const Attended attended = attend(q.view(), k.view(), v.view(),
                                   {.causal = head.causal, .scale = static_cast<float>(head.scale / head.temperature)});
  SmallHeadResult result{to_matrix(one_head(attended.scores)), to_matrix(one_head(attended.weights)),
                         to_matrix(one_head(attended.outputs))};
  if (!head.target.items.empty()) result.loss = half_squared_distance(result.outputs, head.target);
  return result;
}

void check_on_a_grid(Exploration& exploration, int places) {
  const std::size_t n = exploration.sliders.size();
  std::vector<int> at(n, 0);
  for (;;) {
    std::vector<double> settings;
    for (std::size_t i = 0; i < n; ++i) {
      const Slider& slider = exploration.sliders[i];
      const double steps = std::round((slider.high - slider.low) / slider.step);
      settings.push_back(slider.low + std::round(steps * at[i] / (places - 1)) * slider.step);
    }
    exploration.checks.push_back({settings, run(moved(exploration.head, exploration.sliders, settings))});
    std::size_t i = 0;
    while (i < n && ++at[i] == places) at[i++] = 0;
    if (i == n) return;
  }
}

}  // namespace regard
