#include "lesson/measured_cost.h"

#include <malloc.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "attention/forward.h"
#include "kernels/matmul.h"
#include "kernels/softmax.h"
#include "lesson/normal.h"
#include "parallel/parallel_for.h"

namespace regard {
namespace {

// Linux says how much memory a process held at most, and lets it start anew (proc(5): VmHWM, clear_refs).
std::int64_t kib_of(const char* field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (std::int64_t kib = 0; word == field && file >> kib) return kib;
  return 0;
}

class PeakMemory {
 public:
  PeakMemory() {
    malloc_trim(0);  // what was freed earlier would be taken again without being seen
    std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
    before_ = kib_of("VmRSS:");
  }
  std::int64_t grown_bytes() const { return std::max<std::int64_t>(kib_of("VmHWM:") - before_, 0) << 10; }

 private:
  std::int64_t before_ = 0;
};

// What is over quickly is done a few times, and the shortest counts: other work of the machine only adds.
template <typename Work>
Cost measure(const Work& work) {
  constexpr int kTimes = 5;
  constexpr double kLongEnough = 0.1;
  Cost cost{.seconds = std::numeric_limits<double>::infinity(), .bytes = 0};
  for (int i = 0; i < kTimes; ++i) {
    const PeakMemory peak;
    const auto start = std::chrono::steady_clock::now();
    work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    cost.bytes = std::max(cost.bytes, peak.grown_bytes());
    cost.seconds = std::min(cost.seconds, seconds);
    if (seconds > kLongEnough) break;
  }
  return cost;
}

struct OneHead {
  OneHead(std::int64_t positions, std::int64_t channels)
      : q(normal_rows(positions, channels, 1)),
        k(normal_rows(positions, channels, 2)),
        v(normal_rows(positions, channels, 3)) {}
  Tensor<float, 2> q, k, v;
};

Matrix as_weights(const Tensor<float, 2>& x) {
  return {.dtype = DType::f32,
          .rows = x.shape()[0],
          .cols = x.shape()[1],
          .data = reinterpret_cast<const std::byte*>(x.data()),
          .row_stride = x.shape()[1] * 4};
}

}  // namespace

std::int64_t square_bytes(std::int64_t positions) { return positions * positions * 4; }

Cost square_way(std::int64_t positions, std::int64_t channels) {
  const OneHead head(positions, channels);
  Tensor<float, 2> out({positions, channels}), turned({channels, positions});
  const float scale = 1 / std::sqrt(static_cast<float>(channels));
  for (std::int64_t s = 0; s < positions; ++s)
    for (std::int64_t c = 0; c < channels; ++c) turned(c, s) = head.v(s, c), out(s, c) = 0;
  return measure([&] {
    Tensor<float, 2> weights({positions, positions});
    matmul(as_weights(head.k), head.q.view(), weights.view());
    parallel_for(positions, [&](std::int64_t r, int) {
      float* row = &weights(r, 0);
      for (std::int64_t s = 0; s < positions; ++s) row[s] *= scale;
      softmax(row, row, positions);
    });
    matmul(as_weights(turned), weights.view(), out.view());
  });
}

Cost kernel_way(std::int64_t positions, std::int64_t channels) {
  const OneHead head(positions, channels);
  Tensor<float, 3> out({positions, 1, channels});
  for (std::int64_t i = 0; i < out.size(); ++i) out.data()[i] = 0;
  const std::vector<QueryRow> rows = query_rows(1, positions, positions);
  const std::byte* pages[] = {reinterpret_cast<const std::byte*>(head.k.data()),
                              reinterpret_cast<const std::byte*>(head.v.data())};
  const Rows in_place{
      .page_rows = positions, .row_stride = channels * 4, .head_stride = channels * 4, .inner_stride = 4};
  Sequence sequence{.length = positions, .k = in_place, .v = in_place, .visible = {}, .segment = {}};
  sequence.k.pages = &pages[0];
  sequence.v.pages = &pages[1];
  Problem problem;
  problem.q = View<const float, 3>(head.q.data(), {positions, 1, channels});
  problem.rows = rows;
  problem.sequences = {&sequence, 1};
  problem.value_channels = channels;
  return measure([&] { forward(problem, out.view()); });
}

}  // namespace regard
