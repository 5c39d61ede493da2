#pragma once
// The strongest reads of chosen rows, and their exact weights.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "reading/placement.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace regard {

// The k largest weights of each row and head in falling order, equal ones by rising key. Where a row reads fewer than k
// keys (a weight of 0 is not a read), the rest are weight 0, key -1.
class TopReader final : public Reader {
 public:
  // weight, key: [kept heads, kept rows, k], rows of k without gaps.
  void aim(const Placement& placement, View<float, 3> weight, View<std::int32_t, 3> key);
  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override;

 private:
  const Placement* placement_ = nullptr;
  View<float, 3> weight_;
  View<std::int32_t, 3> key_;
};

// Every weight of chosen rows: weight [kept heads, kept rows, keys], 0 where masked.
class WeightsReader final : public Reader {
 public:
  void aim(const Placement& placement, View<float, 3> weight);
  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override;

 private:
  const Placement* placement_ = nullptr;
  View<float, 3> weight_;
};

// Mass per group of positions: group[j] in [0, groups) for every key, -1: in none. mass: [kept heads, kept rows,
// groups].
class GroupReader final : public Reader {
 public:
  explicit GroupReader(std::vector<std::int32_t> group) : group_(std::move(group)) {}
  void aim(const Placement& placement, View<float, 3> mass);
  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override;

 private:
  std::vector<std::int32_t> group_;
  const Placement* placement_ = nullptr;
  View<float, 3> mass_;
};

// How often a head's strongest read copies: the row at position i reads most a key that holds token i + 1, the one that
// comes next (the retrieval score of Wu 2404.15574, read over the rows of a text instead of over decode steps). With a
// needle [begin, end), only keys inside it count.
class CopyReader final : public Reader {
 public:
  // tokens: those of the whole text. copies: [kept heads], the running counts.
  explicit CopyReader(std::span<const std::int32_t> tokens, std::int64_t needle_begin = 0,
                      std::int64_t needle_end = std::numeric_limits<std::int64_t>::max())
      : tokens_(tokens.begin(), tokens.end()), needle_begin_(needle_begin), needle_end_(needle_end) {}
  void aim(const Placement& placement, View<std::int64_t, 1> copies);
  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override { top_.tile(tile, thread); }
  void finish() override;

 private:
  std::vector<std::int32_t> tokens_;
  std::int64_t needle_begin_, needle_end_;
  const Placement* placement_ = nullptr;
  View<std::int64_t, 1> copies_;
  Placement pass_;  // the rows of this pass that something follows, numbered from 0
  std::vector<std::int64_t> position_;
  Tensor<float, 3> weight_;
  Tensor<std::int32_t, 3> key_;
  TopReader top_;
};

}  // namespace regard
