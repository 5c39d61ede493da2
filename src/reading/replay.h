#pragma once
// Runs the layers of a text again that was fed already, so that what needs its weights from the top layer down
// (rollout) can have them without any of them, or the queries of all layers, being kept. The residuals that enter a
// layer are made anew from the nearest ones that are kept, a fixed amount of them, in the order that takes the fewest
// runs ("revolve", Griewank & Walther 2000). The same bits as the first time (law 3).

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "attention/read.h"
#include "model/model.h"
#include "model/state.h"
#include "model/tap.h"
#include "tensor/buffer.h"

namespace regard {

class Replay {
 public:
  static constexpr std::int64_t kKeptBytes = 48 << 20;  // of residuals
  struct Options {
    Tap* watch = nullptr;  // sees every layer run; it may stop the work by throwing
    Tap* edits = nullptr;  // writes what was written the first time
    std::int64_t kept_bytes = kKeptBytes;
  };
  // ids: all that was fed to `sequence` of `state`. Error{usage} when the cache holds another number of rows.
  Replay(const Model& model, State& state, std::span<const std::int32_t> ids, int sequence, const Options& options);

  // For each layer from the top down: the readers that readers(layer) gives are shown the weights of all rows, in
  // several passes; then after(layer).
  void each_layer_down(const std::function<std::vector<Reader*>(std::int64_t layer)>& readers,
                       const std::function<void(std::int64_t layer)>& after);

  // Beside cache and scratch.
  static std::int64_t bytes_needed(const ModelConfig& config, std::int64_t tokens);
  // How many layers are run for all tokens, each counted as often as it is.
  static std::int64_t layers_run(const ModelConfig& config, std::int64_t tokens);

 private:
  Tensor<float, 2> embedded() const;
  void run(std::int64_t layer, View<float, 2> resid, std::span<Reader* const> readers);

  const Model& model_;
  State& state_;
  std::vector<Row> rows_;
  Options options_;
  std::int64_t slots_;
};

}  // namespace regard
