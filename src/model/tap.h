#pragma once
// What the model asks while it runs. The model knows nothing of who listens. No tap, no cost.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "attention/problem.h"
#include "attention/read.h"
#include "attention/substitute.h"
#include "model/site.h"
#include "tensor/view.h"

namespace regard {

// One row of a forward pass: a token at a position of a sequence.
struct Row {
  std::int32_t token = 0;
  std::int32_t sequence = 0;
  std::int64_t position = 0;
};

class Tap {
 public:
  virtual ~Tap() = default;
  // Asked before a value is announced; false costs nothing.
  virtual bool wants(Site, std::int64_t /*layer*/) const { return false; }
  // The value, as the next step will use it; what is written here is what the next step reads (not for `result`).
  virtual void at(Site, std::int64_t /*layer*/, std::span<const Row>, View<float, 3> /*value*/) {}
  // Readers for this layer's weights, called once per forward pass and layer; they see this pass's rows.
  virtual std::vector<Reader*> readers(std::int64_t /*layer*/, std::span<const Row>) { return {}; }
  // Changes of this layer's scores (attention/problem.h); the span must live until the layer is done.
  virtual std::span<const EdgeEdit> edges(std::int64_t /*layer*/, std::span<const Row>) { return {}; }
  // The same for the attention that reads the source.
  virtual std::vector<Reader*> cross_readers(std::int64_t /*layer*/, std::span<const Row>) { return {}; }
  virtual std::span<const EdgeEdit> cross_edges(std::int64_t /*layer*/, std::span<const Row>) { return {}; }
  // Rows and heads of this layer that read by other weights (attention/substitute.h), one after another; `problem` is
  // what they would read by without. Asked for only where wants(Site::pattern, layer); `first`: false when they are
  // handed out once more, for readers.
  virtual void substitutes(std::int64_t /*layer*/, std::span<const Row>, const Problem& /*problem*/, bool /*first*/,
                           const std::function<void(const Substitute&)>& /*use*/) {}
};

}  // namespace regard
