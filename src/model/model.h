#pragma once
// A model that can be run: its configuration, its weights as stored, its tokenizer. Immutable; everything that changes
// while it runs is in State (model/state.h).

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/packed.h"
#include "tensor/buffer.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"
#include "weights/model_config.h"

namespace regard {

// A linear layer, y = W x (+ b).
struct Linear {
  Matrix weight;
  std::vector<float> bias;  // [N] or empty
  PackedMatrix packed;      // strips is null unless the model was packed
};

// The scale (and shift) of a norm.
struct Norm {
  std::vector<float> weight;  // [C]; empty where the family has no such norm
  std::vector<float> bias;    // [C] or empty
};

struct Layer {
  Norm attention_norm, mlp_norm;
  Norm post_attention_norm, post_mlp_norm;  // Gemma
  Norm query_norm, key_norm;                // per head, [D]
  Linear q, k, v, o;
  Linear gate, up, down;  // gate.weight.data is null where the feed-forward has none
};

// Whether quantised matrices are held packed too (kernels/packed.h): worth it where many single rows will go through,
// as when a text is continued. Changes no bit of any result.
enum class Packing { none, all };

class Model {
 public:
  explicit Model(Checkpoint checkpoint, Packing packing = Packing::none);
  static Model load(const std::filesystem::path& path, Packing packing = Packing::none) {
    return Model(load_checkpoint(path), packing);
  }

  const ModelConfig& config() const { return checkpoint_.config; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  const Matrix& embedding() const { return embedding_; }  // [V, C]
  const std::vector<Layer>& layers() const { return layers_; }
  const Norm& final_norm() const { return final_norm_; }
  const Linear& head() const { return head_; }  // [V, C]
  // Packs what can be packed (Packing::all); takes bytes_to_pack() beside the mapped files.
  void pack();
  std::int64_t bytes_to_pack() const;
  // What packed matrices take; 0 if it was not packed.
  std::int64_t packed_bytes() const { return packed_.size(); }

 private:
  Checkpoint checkpoint_;  // keeps the mapped files alive
  Tokenizer tokenizer_;
  Matrix embedding_;
  std::vector<Layer> layers_;
  Norm final_norm_;
  Linear head_;
  Buffer<std::byte> packed_;
};

}  // namespace regard
