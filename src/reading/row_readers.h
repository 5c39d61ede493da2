#pragma once
// Statistics with one number per (row, head): each is a sum over the row's keys, or known from its softmax alone. A row
// is read in one pass, so nothing needs to be kept between passes.
//
//   LogSumExpReader   log sum_j e^s_ij (with the learned sink's term, where the problem has sinks)
//   EntropyReader     -sum_j P_ij log P_ij over the visible keys, in nats; between 0 and log(number of keys)
//   SinkShareReader   what the learned sink took: 1 - sum_j P_ij; 0 without sinks
//   KeyReader         P_ik for one key k: the sink mass when k is the attention sink (Xiao 2309.17453)
//   OffsetReader      P_i,i-o: o = 0 the row itself, o = 1 the previous token (Olsson 2022), o = n - 1 induction on a
//                     random text of length n said twice
//   DistanceReader    sum_j P_ij |i - j|
//   TokenReader       mass on keys that earlier occurrences of the row's token point at (reading/token_places.h)

#include <cstdint>
#include <span>

#include "reading/placement.h"
#include "reading/token_places.h"
#include "tensor/view.h"

namespace regard {

class RowReader : public Reader {
 public:
  // For the passes from now on: out [kept heads, kept rows] receives the values of the rows that each pass reads. The
  // placement must outlive the pass.
  void aim(const Placement& placement, View<float, 2> out);

  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override;

 protected:
  // Does a tile's value add to the row's, or is it the row's value already?
  enum class Tiles { add, replace };
  explicit RowReader(Tiles tiles) : tiles_(tiles) {}
  // The value of each lane of the group, over this tile.
  virtual void values(const LaneGroup& lanes, float* value) const = 0;
  // The value of a row that sees no key.
  virtual float nothing_seen(std::int64_t /*head*/) const { return 0; }

  std::int64_t position(const LaneGroup& lanes, int i) const { return rows_[lanes.tile.row[lanes.first + i]].position; }
  std::span<const float> sinks() const { return sinks_; }

 private:
  Tiles tiles_;
  const Placement* placement_ = nullptr;
  View<float, 2> out_;
  std::span<const QueryRow> rows_;
  std::span<const float> sinks_;
};

class LogSumExpReader final : public RowReader {
 public:
  LogSumExpReader() : RowReader(Tiles::replace) {}

 protected:
  void values(const LaneGroup& lanes, float* value) const override;
  float nothing_seen(std::int64_t head) const override;
};

class EntropyReader final : public RowReader {
 public:
  EntropyReader() : RowReader(Tiles::add) {}

 protected:
  void values(const LaneGroup& lanes, float* value) const override;
};

class SinkShareReader final : public RowReader {
 public:
  SinkShareReader() : RowReader(Tiles::replace) {}

 protected:
  void values(const LaneGroup& lanes, float* value) const override;
  float nothing_seen(std::int64_t head) const override;
};

class KeyReader final : public RowReader {
 public:
  explicit KeyReader(std::int64_t key) : RowReader(Tiles::add), key_(key) {}

 protected:
  void values(const LaneGroup& lanes, float* value) const override;

 private:
  std::int64_t key_;
};

class OffsetReader final : public RowReader {
 public:
  explicit OffsetReader(std::int64_t offset) : RowReader(Tiles::add), offset_(offset) {}

 protected:
  void values(const LaneGroup& lanes, float* value) const override;

 private:
  std::int64_t offset_;
};

class DistanceReader final : public RowReader {
 public:
  DistanceReader() : RowReader(Tiles::add) {}

 protected:
  void values(const LaneGroup& lanes, float* value) const override;
};

// The row at position i reads, of every earlier position j that holds the same token, key j + shift: shift 0 is the
// duplicate-token score, shift 1 induction (the key after an earlier occurrence; Olsson 2022, and TransformerLens'
// head_detector). Only keys up to i count. `places` must outlive the reader.
class TokenReader final : public RowReader {
 public:
  TokenReader(const TokenPlaces& places, int shift) : RowReader(Tiles::add), places_(places), shift_(shift) {}

 protected:
  void values(const LaneGroup& lanes, float* value) const override;

 private:
  const TokenPlaces& places_;
  int shift_;
};

}  // namespace regard
