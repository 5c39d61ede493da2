#include "probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "parallel/parallel_for.h"
#include "tensor/buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "probe.cc"
// clang-format off: foreach_target must come before simd-inl
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// 12 chains: enough for 2 results a cycle at a latency of up to 6. Returns a value that depends on all of them, so that
// none can be left out; the multiplier 1 and the summand 0 keep them normal numbers for ever.
float FmaChains(std::int64_t steps, float one, float zero, std::int64_t* flops) {
  const F32 d;
  const V a = hn::Set(d, one), b = hn::Set(d, zero);
  // All start differently, or the compiler sees that they are the same and computes one of them.
  V c0 = a, c1 = hn::Add(c0, a), c2 = hn::Add(c1, a), c3 = hn::Add(c2, a), c4 = hn::Add(c3, a), c5 = hn::Add(c4, a);
  V c6 = hn::Add(c5, a), c7 = hn::Add(c6, a), c8 = hn::Add(c7, a), c9 = hn::Add(c8, a), c10 = hn::Add(c9, a);
  V c11 = hn::Add(c10, a);
  for (std::int64_t i = 0; i < steps; ++i) {
    c0 = Fma(c0, a, b);
    c1 = Fma(c1, a, b);
    c2 = Fma(c2, a, b);
    c3 = Fma(c3, a, b);
    c4 = Fma(c4, a, b);
    c5 = Fma(c5, a, b);
    c6 = Fma(c6, a, b);
    c7 = Fma(c7, a, b);
    c8 = Fma(c8, a, b);
    c9 = Fma(c9, a, b);
    c10 = Fma(c10, a, b);
    c11 = Fma(c11, a, b);
  }
  *flops = steps * 12 * 2 * static_cast<std::int64_t>(hn::Lanes(d));
  const V sum = hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)), hn::Add(hn::Add(c4, c5), hn::Add(c6, c7)));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, hn::Add(hn::Add(c8, c9), hn::Add(c10, c11)))));
}

std::uint32_t ReadAll(const std::uint32_t* data, std::int64_t count) {
  const hn::ScalableTag<std::uint32_t> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (std::int64_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::Xor(s0, hn::Load(d, data + i));
    s1 = hn::Xor(s1, hn::Load(d, data + i + lanes));
    s2 = hn::Xor(s2, hn::Load(d, data + i + 2 * lanes));
    s3 = hn::Xor(s3, hn::Load(d, data + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Xor(hn::Xor(s0, s1), hn::Xor(s2, s3))));
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
HWY_EXPORT(FmaChains);
HWY_EXPORT(ReadAll);

namespace bench {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::atomic<std::uint64_t> g_sink{0};  // results go here, so that no work can be optimised away

// Runs work(thread) once on each of `threads` threads and returns the seconds from the moment all had started.
template <class Work>
double on_all_threads(int threads, const Work& work) {
  const int before = thread_count();
  set_thread_count(threads);
  std::atomic<int> waiting{threads};
  std::atomic<double> begin{0};
  parallel_for(threads, [&](std::int64_t index, int) {
    if (--waiting == 0) begin = seconds_now();
    while (waiting > 0) {
    }
    work(index);
  });
  const double seconds = seconds_now() - begin;
  set_thread_count(before);
  return seconds;
}

}  // namespace

double fma_peak(int threads) {
  constexpr std::int64_t kSteps = 400'000;
  double best = 0;
  for (int slice = 0; slice < 12; ++slice) {
    std::atomic<std::int64_t> flops{0};
    const double seconds = on_all_threads(threads, [&](std::int64_t) {
      std::int64_t mine = 0;
      const float sum = HWY_DYNAMIC_DISPATCH(FmaChains)(kSteps, 1.0f, 0.0f, &mine);
      g_sink += static_cast<std::uint64_t>(sum);
      flops += mine;
    });
    best = std::max(best, static_cast<double>(flops.load()) / seconds * 1e-9);
  }
  return best;
}

double read_bandwidth(int threads) {
  constexpr std::int64_t kWords = std::int64_t{512} << 18;  // 512 MiB
  static const Buffer<std::uint32_t> buffer(kWords);
  const std::int64_t part = kWords / threads / 1024 * 1024;
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const double seconds = on_all_threads(threads, [&](std::int64_t index) {
      g_sink += HWY_DYNAMIC_DISPATCH(ReadAll)(buffer.data() + index * part, part);
    });
    best = std::max(best, static_cast<double>(part * threads) * 4 / seconds * 1e-9);
  }
  return best;
}

}  // namespace bench
}  // namespace regard
#endif
