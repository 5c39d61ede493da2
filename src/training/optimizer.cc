#include "training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard {

float AdamW::rate_at(std::int64_t step) const {
  if (step < rise) return rate * static_cast<float>(step + 1) / static_cast<float>(rise);
  const double way =
      steps <= rise ? 1 : std::min(1.0, static_cast<double>(step - rise) / static_cast<double>(steps - rise));
  const double left = floor + (1 - floor) * (1 + std::cos(std::numbers::pi * way)) / 2;
  return static_cast<float>(rate * left);
}

std::string AdamW::text() const {
  return fmt::format("rate {}, rise {}, steps {}, floor {}, decay {}, clip {}, betas {} {}, epsilon {}", rate, rise,
                     steps, floor, weight_decay, clip, beta1, beta2, epsilon);
}

namespace {

constexpr std::int64_t kBlock = 4096;

// body(begin, end, block) over [0, n) in blocks.
template <class Body>
void for_blocks(std::int64_t n, const Body& body) {
  constexpr std::int64_t kTogether = 16;  // a task worth a thread
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  parallel_for((blocks + kTogether - 1) / kTogether, [&](std::int64_t task, int) {
    for (std::int64_t b = task * kTogether; b < std::min(blocks, (task + 1) * kTogether); ++b)
      body(b * kBlock, std::min(n, (b + 1) * kBlock), b);
  });
}

}  // namespace

double norm(std::span<const float> values) {
  const std::int64_t n = std::ssize(values);
  std::vector<double> sums(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  for_blocks(n, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += double{values[i]} * values[i];
    sums[block] = sum;
  });
  double all = 0;
  for (const double sum : sums) all += sum;
  return std::sqrt(all);
}

double step(const AdamW& how, std::int64_t step, const Parameters& gradients, Moments& moments,
            Parameters& parameters) {
  const double size = norm(gradients.values());
  if (!std::isfinite(size))
    throw Error(ErrorCode::bad_input, fmt::format("the gradient of step {} is not finite", step),
                "train with a smaller rate");
  const float factor = how.clip > 0 && size > how.clip ? static_cast<float>(how.clip / size) : 1.0f;
  const float rate = how.rate_at(step);
  const auto t = static_cast<double>(step + 1);
  // The moments begin at 0: what that takes off is put back.
  const auto first_back = static_cast<float>(1 / (1 - std::pow(double{how.beta1}, t)));
  const auto second_back = static_cast<float>(1 / (1 - std::pow(double{how.beta2}, t)));
  const float* g = gradients.values().data();
  float *w = parameters.values().data(), *m = moments.first.data(), *v = moments.second.data();
  for (const Parameters::Place& place : parameters.places()) {
    const float decay = place.vector ? 1.0f : 1 - rate * how.weight_decay;
    for_blocks(place.rows * place.cols, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = place.begin + begin; i < place.begin + end; ++i) {
        const float d = g[i] * factor;
        m[i] = how.beta1 * m[i] + (1 - how.beta1) * d;
        v[i] = how.beta2 * v[i] + (1 - how.beta2) * (d * d);
        const float towards = m[i] * first_back / (std::sqrt(v[i] * second_back) + how.epsilon);
        w[i] = w[i] * decay - rate * towards;
      }
    });
  }
  return size;
}

}  // namespace regard
