#pragma once
// What every test of numeric code needs: each instruction set, several thread counts, equal bits, distance from the
// truth.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "parallel/parallel_for.h"

namespace regard::testing {

// Puts back the target and the thread count that were in force, also when a test leaves by an exception.
class Restore {
 public:
  Restore() : target_(current_target()), threads_(thread_count()) {}
  ~Restore() {
    set_target(target_);
    set_thread_count(threads_);
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  std::string target_;
  int threads_;
};

// Every target that this processor can run, best first; REGARD_TEST_TARGETS=AVX3,AVX2 leaves others out, for processors
// that are emulated (tools/emulate).
inline std::vector<std::string> tested_targets() {
  const std::vector<std::string> here = available_targets();
  const char* wanted = std::getenv("REGARD_TEST_TARGETS");
  if (wanted == nullptr) return here;
  std::vector<std::string> names;
  std::istringstream list(wanted);
  for (std::string name; std::getline(list, name, ',');) {
    if (std::find(here.begin(), here.end(), name) == here.end())
      throw std::runtime_error("REGARD_TEST_TARGETS names " + name + ", which does not run here");
    names.push_back(name);
  }
  return names;
}

// body(target name) on each of them.
template <typename Body>
void on_each_target(Body&& body) {
  const Restore restore;
  for (const std::string& name : tested_targets()) {
    SCOPED_TRACE("target " + name);
    set_target(name);
    body(name);
  }
}

// body(threads) for 1, 2 and 3 threads: more than the processors is on purpose.
template <typename Body>
void on_thread_counts(Body&& body) {
  const Restore restore;
  for (int threads : {1, 2, 3}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    set_thread_count(threads);
    body(threads);
  }
}

// Equal bytes. Says where the first difference is and how many there are.
template <typename T>
::testing::AssertionResult same_bits(std::span<const T> a, std::span<const T> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) return ::testing::AssertionSuccess();
  std::size_t first = a.size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    first = std::min(first, i);
    ++count;
  }
  return ::testing::AssertionFailure() << count << " of " << a.size() << " differ, first at [" << first
                                       << "]: " << ::testing::PrintToString(a[first]) << " and "
                                       << ::testing::PrintToString(b[first]);
}
template <typename T>
::testing::AssertionResult same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bits(std::span<const T>(a), std::span<const T>(b));
}

// make() -> std::vector, with each target and each thread count: law 3 says that all are the same bytes.
template <typename Make>
void expect_same_bits_everywhere(Make&& make) {
  using Values = decltype(make());
  Values expected;
  bool first = true;
  on_each_target([&](const std::string&) {
    on_thread_counts([&](int) {
      Values values = make();
      if (first) {
        expected = std::move(values);
        first = false;
      } else {
        EXPECT_TRUE(same_bits(expected, values));
      }
    });
  });
}

// The distance between a and the truth in units of the last place of the f32 nearest to the truth; 0 when both are NaN
// or the same infinity, infinite when only one is.
inline double ulps(float a, double truth) {
  if (std::isnan(a) || std::isnan(truth))
    return std::isnan(a) && std::isnan(truth) ? 0 : std::numeric_limits<double>::infinity();
  const float nearest = static_cast<float>(truth);
  if (std::isinf(a) || std::isinf(nearest)) return a == nearest ? 0 : std::numeric_limits<double>::infinity();
  const int exponent = std::max(std::ilogb(nearest == 0 ? std::numeric_limits<float>::denorm_min() : nearest), -126);
  return std::fabs(a - truth) / std::ldexp(1.0, exponent - 23);
}

// Largest |a[i] - truth[i]|; infinite when one of the two is NaN and the other is not.
template <typename A, typename Truth>
double max_error(const A& a, const Truth& truth) {
  double worst = a.size() == truth.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), truth.size()); ++i) {
    const double x = a[i], t = truth[i];
    if (x == t || (std::isnan(x) && std::isnan(t))) continue;
    const double e = std::fabs(x - t);
    worst = std::isnan(e) ? std::numeric_limits<double>::infinity() : std::max(worst, e);
  }
  return worst;
}

// Law 1: at most twice as far from the float64 truth as the plain f32 evaluation `plain` of the same formula.
template <typename A, typename Plain, typename Truth>
::testing::AssertionResult within_law_1(const A& fast, const Plain& plain, const Truth& truth) {
  const double error = max_error(fast, truth);
  const double allowed = 2 * max_error(plain, truth);
  if (error <= allowed) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "largest error " << error << ", allowed " << allowed
                                       << " (twice that of plain f32)";
}

// Numbers in [-1, 1) * scale from a fixed sequence (splitmix64), the same on every machine.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float next(float scale = 1) {
    return scale * (static_cast<float>(static_cast<std::int64_t>(bits() >> 40) - (1 << 23)) * 0x1p-23f);
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }
  std::vector<float> vector(std::int64_t n, float scale = 1) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) value = next(scale);
    return values;
  }

 private:
  std::uint64_t state_;
};

}  // namespace regard::testing
