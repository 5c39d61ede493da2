#include "training/text_recipe.h"

#include <algorithm>

#include "parallel/counter_random.h"
#include "tensor/error.h"
#include "text/byte_alphabet.h"
#include "training/default_recipe.h"
#include "training/model_pass.h"
#include "weights/sha256.h"

namespace regard {
namespace {

constexpr std::int64_t kContext = 256;
constexpr std::int64_t kAtATime = 16;

// The piece of `text` from `begin` on: it learns to say `length` bytes.
void add_piece(Batch& batch, std::string_view text, std::int64_t begin, std::int64_t length) {
  std::vector<std::int32_t> ids = {0}, next;
  for (const char c : text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(length)))
    next.push_back(1 + static_cast<unsigned char>(c));
  ids.insert(ids.end(), next.begin(), next.end() - 1);
  batch.add(ids, next);
}

}  // namespace

TokenizerSpec byte_tokenizer() {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::byte_level_bpe;
  spec.pieces = {"<s>"};
  for (int byte = 0; byte < 256; ++byte) spec.pieces.push_back(byte_letter(static_cast<std::uint8_t>(byte)));
  spec.types.assign(spec.pieces.size(), TokenType::normal);
  spec.types[0] = TokenType::control;
  spec.bos = 0;
  spec.add_bos = true;
  Stages stages;
  stages.spelling.byte_level = true;
  spec.stages = stages;
  return spec;
}

ModelConfig text_model_config() {
  ModelConfig config = default_model_config(257);
  config.name = "regard text";
  config.context = config.rotary_global.context = config.rotary_local.context = kContext;
  return config;
}

std::string TextRecipe::text(std::string_view learnt) const {
  Sha256 sum;
  sum.update(learnt.data(), learnt.size());
  return fmt::format("text {}: {}, {} pieces of {}, seed {}, dropout {}, {}", sum.hex(),
                     shape_text(text_model_config()), pieces, kContext, seed, dropout, how.text());
}

SplitText::SplitText(std::string_view whole) {
  constexpr std::size_t kLeast = 20;
  if (whole.size() < kLeast)
    throw Error(ErrorCode::bad_input,
                fmt::format("the text has {} bytes; a model is made of {} or more", whole.size(), kLeast),
                "a few hundred thousand are a good start");
  const std::size_t cut = whole.size() - whole.size() / 10;
  learnt = whole.substr(0, cut);
  held_out = whole.substr(cut);
}

Batch text_batch(const TextRecipe& recipe, std::string_view learnt, std::int64_t step) {
  const std::int64_t length = std::min(kContext, std::ssize(learnt));
  const auto places = static_cast<std::uint64_t>(std::ssize(learnt) - length + 1);
  Batch batch;
  CounterRandom random(RandomUse::pieces, recipe.seed, static_cast<std::uint64_t>(step));
  for (std::int64_t i = 0; i < recipe.pieces; ++i)
    add_piece(batch, learnt, static_cast<std::int64_t>(random.below(places)), length);
  return batch;
}

TextLoss text_loss(const Model& model, std::string_view text, std::int64_t most) {
  const std::int64_t all = (std::ssize(text) + kContext - 1) / kContext, pieces = std::min(all, most);
  TextLoss said;
  for (std::int64_t begin = 0; begin < pieces; begin += kAtATime) {
    Batch batch;
    for (std::int64_t i = begin; i < std::min(begin + kAtATime, pieces); ++i) {
      const std::int64_t from = i * all / pieces * kContext;
      add_piece(batch, text, from, std::min(kContext, std::ssize(text) - from));
    }
    ModelPass pass(model, batch.rows, Keep::inputs);
    pass.forward();
    said.loss += pass.loss(batch.targets, nullptr) * static_cast<double>(batch.rows.size());
    said.bytes += std::ssize(batch.rows);
  }
  said.loss /= static_cast<double>(said.bytes);
  return said;
}

}  // namespace regard
