#pragma once
// A layer there and back: forwards with the kernels of the forward pass, so with its bits, keeping what the way back
// needs; backwards from the gradient of its output to that of its input, its sites and its weights.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/site.h"
#include "model/state.h"
#include "model/tap.h"
#include "tensor/buffer.h"
#include "training/parameters.h"

namespace regard {

// Asked as a Tap is: of a value at a site it is shown the gradient instead. At a site that is written the gradient is
// that of what is written.
class GradientTap {
 public:
  virtual ~GradientTap() = default;
  virtual bool wants(Site site, std::int64_t layer) const = 0;
  virtual void at(Site site, std::int64_t layer, View<const float, 3> gradient) = 0;  // [rows, heads, channels]
};

// What a layer keeps; R rows.
struct KeptLayer {
  Tensor<float, 2> x;                  // [R, C] what it read
  Tensor<float, 2> q_made, k_made;     // [R, H D], [R, G D] before the norm per head; empty without one
  Tensor<float, 3> q, k, v, z;         // [R, H or G, D or E]; q and k after rotary
  Tensor<RowSoftmax, 2> softmax;       // [R, H]
  Tensor<float, 2> branch;             // [R, C] of attention, before its norm behind; empty without one
  Tensor<float, 2> mid;                // [R, C] the residual between the branches
  Tensor<float, 2> gate, up;           // [R, F] before the activation; gate is empty without one
  Tensor<float, 2> mlp_branch, after;  // [R, C] before the norm behind the branch; before that behind the sum
};

class LayerPass {
 public:
  // rows: whole texts, each in one piece from position 0 on, the sequences in order. Error{unsupported} naming what the
  // family has that gradients do not know: mixtures, cross attention, a bias by distance, clamped_swiglu.
  // dropout: of attention's weights, as attention/problem.h says; each layer has a seed of its own, made of this one.
  // visible: [R], 0 where no row reads the keys and values of this one; empty: all are read.
  LayerPass(const Model& model, std::vector<Row> rows, Dropout dropout = {}, std::vector<std::uint8_t> visible = {});

  std::span<const Row> rows() const { return rows_; }
  // resid [R, C], in place: from the layer's input to its output.
  void forward(std::int64_t layer, View<float, 2> resid, KeptLayer& kept);
  // d_resid [R, C], in place: from the gradient of the output to that of the input.
  void backward(std::int64_t layer, const KeptLayer& kept, View<float, 2> d_resid, Parameters* gradients,
                GradientTap* tap = nullptr);

 private:
  Problem problem(std::int64_t layer, const KeptLayer& kept);
  void attention(std::int64_t layer, View<const float, 2> in, KeptLayer& kept);
  // From dz [R, H E] to the gradient of what attention read, [R, C].
  Tensor<float, 2> attention_backward(std::int64_t layer, const KeptLayer& kept, View<const float, 2> in,
                                      View<float, 2> dz, Parameters* gradients, GradientTap* tap);
  Tensor<float, 2> mlp_backward(const Layer& layer, std::int64_t l, const KeptLayer& kept, View<const float, 2> in,
                                View<const float, 2> d_branch, Parameters* gradients, GradientTap* tap);
  // dx = the norm's gradient at x of dy; dy itself where the norm does nothing.
  void norm_backward(const Norm& norm, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx,
                     Parameters* gradients) const;
  RotaryTable& rotary(std::int64_t layer);

  const Model& model_;
  const ModelConfig& config_;
  std::vector<Row> rows_;
  Dropout dropout_;
  std::vector<std::uint8_t> visible_;
  std::vector<std::int64_t> positions_;
  std::vector<QueryRow> query_rows_;
  std::vector<std::int64_t> begins_;  // of each sequence, and the end of the last
  std::vector<const std::byte*> key_pages_, value_pages_;
  std::vector<Sequence> sequences_;
  State state_;
};

}  // namespace regard
