#include "model/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensor/error.h"

namespace regard {
namespace {

// splitmix64 (Steele, Lea, Flood 2014) of seed and step: a counter, so a draw does not depend on the draws before it.
double uniform(std::uint64_t seed, std::uint64_t step) {
  const auto mix = [](std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  };
  return static_cast<double>(mix(mix(seed) + step) >> 11) * 0x1p-53;
}

}  // namespace

void validate(const SamplingOptions& o) {
  const auto refuse = [](const char* option, double value, const char* range) {
    throw Error(ErrorCode::usage, fmt::format("{} {} is out of range", option, value), fmt::format("use {}", range));
  };
  if (!(o.temperature >= 0) || std::isinf(o.temperature)) refuse("temperature", o.temperature, "0 (greedy) or more");
  if (o.top_k < 0) refuse("top-k", static_cast<double>(o.top_k), "1 or more, or 0 for no limit");
  if (!(o.top_p > 0 && o.top_p <= 1)) refuse("top-p", o.top_p, "a number above 0, at most 1");
  if (!(o.min_p >= 0 && o.min_p <= 1)) refuse("min-p", o.min_p, "a number from 0 to 1");
}

std::int32_t sample(const float* logits, std::int64_t n, const SamplingOptions& o, std::uint64_t step) {
  validate(o);
  const auto better = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::int32_t best = -1;
  for (std::int32_t i = 0; i < n; ++i)  // NaN can't be chosen
    if (best < 0 ? !std::isnan(logits[i]) : logits[i] > logits[best]) best = i;
  if (best < 0) throw Error(ErrorCode::bad_input, "every logit is NaN: there is no next token to choose");
  if (o.temperature == 0 || std::isinf(logits[best])) return best;

  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < n; ++i)
    if (!std::isnan(logits[i])) ids.push_back(i);
  const std::size_t keep =
      o.top_k > 0 ? std::min<std::size_t>(ids.size(), static_cast<std::size_t>(o.top_k)) : ids.size();
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(keep), ids.end(), better);
  ids.resize(keep);
  std::vector<double> p(keep);
  for (std::size_t i = 0; i < keep; ++i)
    p[i] = std::exp((static_cast<double>(logits[ids[i]]) - static_cast<double>(logits[best])) / o.temperature);
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  std::size_t kept = 0;
  double mass = 0;
  // p falls from left to right: top-p keeps the shortest head with that mass, min-p those not far below the best.
  while (kept < keep && (kept == 0 || (mass < o.top_p * total && p[kept] >= o.min_p * p[0]))) mass += p[kept++];
  double rest = uniform(o.seed, step) * mass;
  for (std::size_t i = 0; i < kept; ++i) {
    rest -= p[i];
    if (rest < 0) return ids[i];
  }
  return ids[kept - 1];
}

}  // namespace regard
