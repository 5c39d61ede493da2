#pragma once
// How a small model of one text is made. It reads bytes, so that any text will do, in any language or none.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "training/trainer.h"

namespace regard {

// <s>, then the 256 bytes.
TokenizerSpec byte_tokenizer();
// The default model's shape, for pieces of 256 tokens.
ModelConfig text_model_config();

struct TextRecipe {
  AdamW how{.rate = 2e-3f, .rise = 200, .steps = 2000, .floor = 0.02f};
  std::int64_t pieces = 16;  // of a step
  std::uint64_t seed = 1;
  float dropout = 0;

  // One line with all of it and a checksum of the text.
  std::string text(std::string_view learnt) const;
};

// A text, of which the last tenth is held out. Error{bad_input} for one that is too short for that.
struct SplitText {
  explicit SplitText(std::string_view whole);
  std::string_view learnt, held_out;
};

// The pieces of step `step`: <s>, then 255 bytes from any place (all there are of a shorter text). Every one of them is
// to be said, and the byte behind the last.
Batch text_batch(const TextRecipe& recipe, std::string_view learnt, std::int64_t step);

// How well a text is said: the mean loss of its bytes, in nats, cut into such pieces one after another; where these are
// more than `most`, of so many of them, evenly apart.
struct TextLoss {
  std::int64_t bytes = 0;  // that were said
  double loss = 0;
};
TextLoss text_loss(const Model& model, std::string_view text, std::int64_t most = 256);

}  // namespace regard
