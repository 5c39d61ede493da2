#include "line.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "parallel/parallel_for.h"
#include "probe.h"

namespace regard::bench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Measured measure(const std::function<void()>& work, double amount, Yardstick yardstick, int repetitions) {
  const int threads = thread_count();
  const auto probe = [&] { return yardstick == Yardstick::fma_peak ? fma_peak(threads) : read_bandwidth(threads); };
  struct Repetition {
    double figure, peak, seconds;
    bool steady;
  };
  std::vector<Repetition> all;
  work();  // memory is touched, threads are up
  for (int i = 0; i < repetitions; ++i) {
    const double before = probe();
    const double time = seconds_of(work);
    const double after = probe();
    all.push_back(
        {amount / time, (before + after) / 2, time, std::fabs(before - after) <= 0.05 * std::max(before, after)});
  }
  const auto steady = std::count_if(all.begin(), all.end(), [](const Repetition& r) { return r.steady; });
  std::vector<double> figure, peak, fraction, time;
  for (const Repetition& r : all) {
    if (!r.steady && steady >= 3) continue;
    figure.push_back(r.figure);
    peak.push_back(r.peak);
    fraction.push_back(r.figure / r.peak);
    time.push_back(r.seconds);
  }
  return {median(figure), median(peak), median(fraction), median(time)};
}

double ratio(const std::function<void()>& a, const std::function<void()>& b, int repetitions) {
  a();
  b();
  std::vector<double> ratios;
  for (int i = 0; i < repetitions; ++i) {
    const double first = seconds_of(a);
    ratios.push_back(first / seconds_of(b));
  }
  return median(ratios);
}

}  // namespace regard::bench
