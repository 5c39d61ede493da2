#pragma once
// The blocks of a model on rows of the residual stream, a layer at a time. A prompt, a decode step and a sweep of
// what-ifs differ only in which rows pass, and in where their keys are (KeyStore): one code path, same bits.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/state.h"
#include "model/tap.h"

namespace regard {

// Where the keys and values that a pass makes go, and where its rows find those they read.
class KeyStore {
 public:
  virtual ~KeyStore() = default;
  // Of one layer, k: [rows, G, D] after rotary, v: [rows, G, E]; both stay where they are until the layer is done.
  virtual void put(std::int64_t layer, std::span<const Row> rows, View<const float, 3> k, View<const float, 3> v) = 0;
  // What the rows of each sequence read in that layer, those just put included.
  virtual std::vector<Sequence> sequences(std::int64_t layer) = 0;
  // What they read of the source, where the model has one.
  virtual std::vector<Sequence> sources(std::int64_t /*layer*/) { return {}; }
};

// Rows on their way through the blocks.
struct Stream {
  std::vector<Row> rows;
  View<float, 2> resid;  // [rows, C]
};

class Blocks {
 public:
  // All must outlive it. The rotary tables and the scratch memory of `state` are used, not its cache.
  Blocks(const Model& model, State& state, KeyStore& keys, Tap* tap);

  // The residual after `layer`, in place. `kept`: indices of the rows whose output is wanted, ascending; the others
  // leave the stream once their keys and values are made, and resid's first rows are those that stay. Null: all.
  void run(std::int64_t layer, Stream& stream, const std::vector<std::int64_t>* kept = nullptr);

 private:
  View<float, 2> attention(std::int64_t l, Stream& stream, View<float, 2> normed,
                           const std::vector<std::int64_t>* kept);
  View<float, 2> enter(const Norm& norm, View<const float, 2> resid);
  void leave(const Norm& norm, View<float, 2> branch);
  void feed_forward(std::int64_t l, const Stream& stream, View<const float, 2> normed, View<float, 2> branch);
  View<float, 2> activated(const FeedForward& mlp, View<const float, 2> normed);
  void mixture(const Layer& layer, View<const float, 2> normed, View<float, 2> branch);
  View<float, 2> cross_attention(std::int64_t l, const Stream& stream, View<const float, 2> normed);
  Problem posed(Problem problem, const Stream& stream, View<const float, 3> q, std::span<const Sequence> sequences);
  void read_and_mix(std::int64_t l, const Stream& stream, View<const float, 3> q, View<float, 3> z);
  void mix(const Problem& problem, std::int64_t l, const Stream& stream, const std::vector<Reader*>& readers,
           bool substituted, View<float, 3> z);
  void rotate(std::int64_t l, View<float, 3> x, std::span<const Row> rows);
  void announce(Site site, std::int64_t l, std::span<const Row> rows, View<float, 3> value);
  void announce_result(std::int64_t l, std::span<const Row> rows, View<const float, 2> z);

  const Model& model_;
  const ModelConfig& config_;
  State& state_;
  KeyStore& keys_;
  Tap* tap_;
};

}  // namespace regard
