#include "model/sampling.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

// Ids from the best to the worst, ordered as far as somebody looks: of a large vocabulary, most are never looked at.
template <typename Better>
class Ranking {
 public:
  Ranking(std::vector<std::int32_t> ids, Better better) : ids_(std::move(ids)), better_(better) {}
  // Only the best n.
  void keep(std::size_t n) {
    if (n >= ids_.size()) return;
    order(n);
    ids_.resize(n);
  }
  const std::vector<std::int32_t>& ids() const { return ids_; }  // all that are kept, in some order
  std::int32_t at(std::size_t rank) {
    if (rank >= ordered_) order(std::min(ids_.size(), std::max<std::size_t>(rank + 1, 4 * ordered_ + 64)));
    return ids_[rank];
  }

 private:
  void order(std::size_t ranks) {
    const auto place = [&](std::size_t i) { return ids_.begin() + static_cast<std::ptrdiff_t>(i); };
    if (16 * (ranks - ordered_) < ids_.size() - ordered_) {
      std::partial_sort(place(ordered_), place(ranks), ids_.end(), better_);
    } else {
      if (ranks < ids_.size()) std::nth_element(place(ordered_), place(ranks), ids_.end(), better_);
      std::sort(place(ordered_), place(ranks), better_);
    }
    ordered_ = ranks;
  }
  std::vector<std::int32_t> ids_;
  std::size_t ordered_ = 0;
  Better better_;
};

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
  if (best < 0)
    throw Error(ErrorCode::bad_input, "every logit is NaN: there is no next token to choose",
                "what the model computed overflowed");
  if (o.temperature == 0 || std::isinf(logits[best])) return best;

  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < n; ++i)
    if (!std::isnan(logits[i])) ids.push_back(i);
  Ranking ranking(std::move(ids), better);
  const auto p = [&](std::int32_t id) {
    return std::exp((static_cast<double>(logits[id]) - static_cast<double>(logits[best])) / o.temperature);
  };
  double total = 0;
  if (o.top_k > 0) ranking.keep(static_cast<std::size_t>(o.top_k));
  for (const std::int32_t id : ranking.ids()) total += p(id);
  std::size_t kept = ranking.ids().size();
  double mass = total;
  if (o.top_p < 1 || o.min_p > 0) {
    // p falls from rank to rank: top-p keeps the shortest head with that mass, min-p those not far below the best.
    mass = 0;
    for (kept = 0; kept < ranking.ids().size(); ++kept) {
      const double next = p(ranking.at(kept));
      if (kept > 0 && !(mass < o.top_p * total && next >= o.min_p)) break;
      mass += next;
    }
  }
  double rest = uniform(o.seed, step) * mass;
  for (std::size_t i = 0; i < kept; ++i) {
    rest -= p(ranking.at(i));
    if (rest < 0) return ranking.at(i);
  }
  return ranking.at(kept - 1);
}

}  // namespace regard
