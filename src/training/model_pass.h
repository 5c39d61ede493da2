#pragma once
// A model there and back: from tokens to logits keeping what gradients need, and from the gradient of the logits to
// those of the embedding, of every site and of every weight.

#include <cstdint>
#include <span>
#include <vector>

#include "training/layer_pass.h"

namespace regard {

// What a pass keeps of the layers: everything (training), or only each layer's input, of which the rest is made again
// on the way back (long texts: memory as the residual stream, a third more work).
enum class Keep { everything, inputs };

class ModelPass {
 public:
  // rows: as LayerPass. The model must outlive it. Error{unsupported} also for a projection, a transform before the
  // logits or a norm behind the embedding.
  ModelPass(const Model& model, std::vector<Row> rows, Keep keep = Keep::everything, Dropout dropout = {},
            std::vector<std::uint8_t> visible = {});

  std::span<const Row> rows() const { return layer_pass_.rows(); }
  // The residual after the last block, [R, C].
  View<const float, 2> forward();

  // The mean loss of next tokens: -log p(targets[r]) over the rows with a target (>= 0), in double by row. Adds the
  // gradients of the mean to `gradients`, and calls backward(); with neither gradients nor a tap the way back is left
  // out. To be called after forward(), once.
  double loss(std::span<const std::int32_t> targets, Parameters* gradients, GradientTap* tap = nullptr);

  // From d_logits, [n, V], of the rows in `at`: their gradient by the residual, which backward() takes.
  Tensor<float, 2> head_backward(std::span<const std::int64_t> at, View<const float, 2> d_logits,
                                 Parameters* gradients);
  // d_resid [R, C], in place: from the residual after the last block to what the first one reads.
  void backward(View<float, 2> d_resid, Parameters* gradients, GradientTap* tap = nullptr);

 private:
  void embedding_backward(View<const float, 2> d_resid, Parameters& gradients) const;

  const Model& model_;
  const ModelConfig& config_;
  Keep keep_;
  LayerPass layer_pass_;
  std::vector<KeptLayer> kept_;
  Tensor<float, 2> resid_;
};

}  // namespace regard
