#pragma once
// A model that can be run: its configuration, its weights as stored, its tokenizer. Immutable; everything that changes
// while it runs is in State (model/state.h).

#include <filesystem>
#include <memory>
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
  std::string name;  // canonical, without ".weight" or ".bias": "blk.0.attn_q"
  Matrix weight;
  std::vector<float> bias;  // [N] or empty
  PackedMatrix packed;      // strips is null unless the model was packed
};

// The scale (and shift) of a norm; without a weight it changes nothing.
struct Norm {
  std::string name;           // as of a Linear
  std::vector<float> weight;  // [C]; empty where the family has no such norm
  std::vector<float> bias;    // [C] or empty
};

struct FeedForward {
  Linear gate, up, down;  // gate.weight.data is null where it has none
};

// What reads the source, where the model has one.
struct CrossAttention {
  Norm norm;
  Linear q, k, v, o;
};

struct Layer {
  Norm attention_norm, mlp_norm;            // before the branches, or behind them (NormPlace::after)
  Norm post_attention_norm, post_mlp_norm;  // NormPlace::around
  Norm query_norm, key_norm;                // per head, [D]
  Linear q, k, v, o;
  std::vector<float> sinks;  // [H] or empty
  CrossAttention cross;
  FeedForward mlp;
  Linear router;                     // [experts, C] of a mixture, which has `experts` instead of `mlp`
  std::vector<FeedForward> experts;  // or empty
};

// What turns tokens into what the first block reads.
struct Embedding {
  Matrix tokens;            // [V, embedding width]
  Linear projection;        // [C, embedding width], where the widths differ
  Matrix positions;         // [rows, C], where there is a table
  std::vector<float> type;  // [C] the row of token type 0, or empty
  Norm norm;
};

// What turns a final residual into logits.
struct Head {
  Norm final_norm;
  Linear projection;  // [embedding width, C], where the widths differ
  Linear transform;   // [C, C] then the activation and transform_norm (BERT)
  Norm transform_norm;
  Linear logits;  // [V, embedding width]; weight.data is null where the model has none
};

// Whether matrices of few bits are held packed too (kernels/packed.h): worth it where many single rows will go
// through, as when a text is continued. Changes no bit of any result.
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

  const Embedding& embedding() const { return embedding_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<float>& relative_bias() const { return relative_bias_; }  // [buckets, H] or empty
  // Of an encoder-decoder, of which this model is the decoder; else null.
  const Model* encoder() const { return encoder_.get(); }
  const Head& head() const { return head_; }
  // Packs what can be packed (Packing::all); takes bytes_to_pack() beside the mapped files.
  void pack();
  std::int64_t bytes_to_pack() const;
  // What packed matrices take; 0 if it was not packed.
  std::int64_t packed_bytes() const { return packed_.size(); }

 private:
  Checkpoint checkpoint_;  // keeps the mapped files alive
  Tokenizer tokenizer_;
  Embedding embedding_;
  std::vector<Layer> layers_;
  std::vector<float> relative_bias_;
  std::unique_ptr<Model> encoder_;
  Head head_;
  Buffer<std::byte> packed_;
};

}  // namespace regard
