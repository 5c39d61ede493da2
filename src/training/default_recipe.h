#pragma once
// How the default model is made: its shape, its data, its steps. models/README.md says it in words.

#include <string>

#include "training/micro_language.h"
#include "training/trainer.h"

namespace regard {

ModelConfig default_model_config(std::int64_t vocabulary);
// On one line.
std::string shape_text(const ModelConfig& config);

struct DefaultRecipe {
  AdamW how{.rate = 2e-3f, .rise = 200, .steps = 8000, .floor = 0.02f};
  std::int64_t sentences = 80;  // of a step
  std::int64_t hidden_in = 4;   // one sentence of so many has a word that no other reads; 0: none has
  std::uint64_t seed = 1;
  float dropout = 0;

  // One line with all of it, the model's shape and a checksum of the sentences: a run goes on only from a state of the
  // same recipe, and the folder that it writes names it.
  std::string text() const;
};

// The sentences of step `step`, in their order. Of every fourth twenty all words are learnt, of the others those that
// follow from what was said. Where a word is hidden, what is said without it is learnt too, so what hiding it does
// later is not an accident of what was never seen. It is neither <s> nor the last word.
Batch default_batch(const DefaultRecipe& recipe, const Tokenizer& tokenizer, std::int64_t step);

// A sentence as tokens: <s>, then the words before the last, word i at position i + 1; and what comes next.
struct Question {
  std::vector<std::int32_t> prompt;
  std::int32_t answer = 0, otherwise = 0;
};
Question question(const Tokenizer& tokenizer, const Sentence& sentence);

// The answer has the largest logit.
bool answers(const Model& model, const Question& question);
// How many of `count` held-out sentences of a kind the model answers rightly.
std::int64_t right_answers(const Model& model, SentenceKind kind, Language language, std::int64_t count);

}  // namespace regard
