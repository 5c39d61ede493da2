#pragma once
// One line of the benchmark: what was timed, how fast it was, what this processor could do at that moment, and how far
// the result was from the float64 truth.

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace regard::bench {

enum class Yardstick { fma_peak, read_bandwidth };

struct Line {
  std::string name;   // "attention forward"
  std::string shape;  // "S=4096 D=64 H=8 causal f32"
  std::string unit;   // "GFLOP/s", "GB/s", "x forward"
  double figure = 0;
  double peak = 0;                                          // of the yardstick, same unit; 0 = there is none
  double fraction = 0;                                      // median over repetitions of figure / peak
  double error = std::numeric_limits<double>::quiet_NaN();  // largest |result - float64|; NaN: not a numeric result
};

// By the steady clock.
double seconds_of(const std::function<void()>& work);

// Times work() between two probes of the yardstick, `repetitions` times. `amount` is what it does, in 1e9 operations or
// bytes. Repetitions whose two probes differ by more than 5 % (somebody else was on the processor) count only if nearly
// all do. Medians. Threads: thread_count().
struct Measured {
  double figure = 0, peak = 0, fraction = 0, seconds = 0;
};
Measured measure(const std::function<void()>& work, double amount, Yardstick yardstick, int repetitions = 9);

// Median of a(): b() in seconds, run in turn.
double ratio(const std::function<void()>& a, const std::function<void()>& b, int repetitions = 7);

// All cases whose name holds `filter` (empty: all), told to `each` as they are done. `model`: a GGUF for the cases that
// run one, or empty to leave those out.
void run(const std::string& filter, const std::string& model, const std::function<void(const Line&)>& each);

}  // namespace regard::bench
