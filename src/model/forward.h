#pragma once
// The forward pass on rows: a prompt is T rows of one sequence, a decode step one row per sequence. One code path, same
// bits.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/state.h"
#include "model/tap.h"
#include "parallel/progress.h"
#include "tensor/buffer.h"

namespace regard {

// Runs `rows` through every block, appending their keys and values to the cache. The rows of one sequence must continue
// it: positions length, length + 1, ... in order. resid: [rows, C], the residual after the last block (before the final
// norm). Errors: token id out of range, position beyond the context, rows that do not continue their sequence.
// kept: the rows whose residual is wanted, ascending; it lies in resid's first rows, and in the last layer nothing else
// is made for the others than their keys and values. Null: all.
void forward(const Model& model, State& state, std::span<const Row> rows, View<float, 2> resid, Tap* tap = nullptr,
             const std::vector<std::int64_t>* kept = nullptr);

// The rows of the embedding: what the first block reads. resid: [rows, C]; tokens must be in range.
void embed(const Model& model, std::span<const Row> rows, View<float, 2> resid);

// Final norm, unembedding, softcap: resid [R, C] -> logits [R, V].
void logits(const Model& model, View<const float, 2> resid, View<float, 2> out);

// The same for some tokens only, with the same bits: out [R, tokens.size()].
void logits_of(const Model& model, View<const float, 2> resid, std::span<const std::int32_t> tokens,
               View<float, 2> out);

struct FeedOptions {
  static constexpr std::int64_t kChunk = 512;
  std::int64_t chunk = kChunk;  // rows per forward pass: bounds memory, never changes a bit (a text that is read in
                                // both directions passes whole)
  Tap* tap = nullptr;
  Progress* progress = nullptr;  // told rows done
  // Final residuals of rows [first, first + n), chunk by chunk.
  std::function<void(std::int64_t first, View<const float, 2> resid)> on_rows;
};
// Of a text of `tokens`: how many rows pass at a time at most.
std::int64_t rows_per_pass(const ModelConfig& config, std::int64_t tokens, std::int64_t chunk = FeedOptions::kChunk);
// Appends ids to a sequence. Gives the last row's final residual [1, C] (empty for no ids).
Tensor<float, 2> feed(const Model& model, State& state, std::span<const std::int32_t> ids, int sequence = 0,
                      const FeedOptions& options = {});

// log p(ids[t + 1] | ids[0..t]) for t in [0, T - 1), from the final residuals that on_rows hands out; few rows of
// logits live at a time.
class TokenLogprobs {
 public:
  TokenLogprobs(const Model& model, std::span<const std::int32_t> ids);
  void rows(std::int64_t first, View<const float, 2> resid);
  const std::vector<float>& values() const { return values_; }

 private:
  const Model& model_;
  std::vector<std::int32_t> ids_;
  std::vector<float> values_;
};

// Bytes a forward pass of `rows` rows takes beside weights and cache.
std::int64_t scratch_bytes(const ModelConfig& config, std::int64_t rows);

}  // namespace regard
