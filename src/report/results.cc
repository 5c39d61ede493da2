#include "report/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace regard {

const char* version() { return REGARD_VERSION; }

std::vector<TokenPiece> token_pieces(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  std::vector<TokenPiece> pieces;
  pieces.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    TokenPiece piece{ids[i], tokenizer.bytes(ids[i])};
    piece.gap =
        i > 0 && tokenizer.decode(ids.subspan(i - 1, 2)).size() > pieces.back().bytes.size() + piece.bytes.size();
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<Candidate> best_candidates(const Tokenizer& tokenizer, std::span<const float> logits, float log_sum_exp,
                                       std::int64_t top) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int32_t id) {
    return std::isnan(logits[id]) ? -std::numeric_limits<float>::infinity() : logits[id];
  };
  const auto n = top < 0 ? order.size() : std::min(order.size(), static_cast<std::size_t>(top));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                    [&](std::int32_t a, std::int32_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
  std::vector<Candidate> best;
  best.reserve(n);
  for (std::size_t i = 0; i < n; ++i)
    best.push_back({{order[i], tokenizer.bytes(order[i])},
                    logits[order[i]],
                    static_cast<double>(logits[order[i]]) - static_cast<double>(log_sum_exp)});
  return best;
}

}  // namespace regard
