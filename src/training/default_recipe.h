#pragma once
// How the default model is made: its shape, its data, its steps. models/README.md says it in words.

#include <string>

#include "training/micro_language.h"
#include "training/trainer.h"

namespace regard {

ModelConfig default_model_config(std::int64_t vocabulary);

struct DefaultRecipe {
  AdamW how{.rate = 2e-3f, .rise = 200, .steps = 8000, .floor = 0.02f};
  std::int64_t sentences = 80;  // of a step
  std::uint64_t seed = 1;
  float dropout = 0;

  // One line with all of it: a run goes on only from a state of the same recipe.
  std::string text() const;
};

// The sentences of step `step`, in their order. Of every fourth twenty all words are learnt, of the others those that
// follow from what was said. In every fourth sentence one word cannot be read: what a model says without a word is
// something that it learnt too, so what hiding a word does is not an accident of what was never seen.
Batch default_batch(const DefaultRecipe& recipe, const Tokenizer& tokenizer, std::int64_t step);

// A sentence as tokens: <s>, then the words before the last, word i at position i + 1; and what comes next.
struct Question {
  std::vector<std::int32_t> prompt;
  std::int32_t answer = 0, otherwise = 0;
};
Question question(const Tokenizer& tokenizer, const Sentence& sentence);

// How many of `count` held-out sentences of a kind the model answers rightly: the answer has the largest logit.
std::int64_t right_answers(const Model& model, SentenceKind kind, Language language, std::int64_t count);

}  // namespace regard
