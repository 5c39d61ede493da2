#include "training/default_recipe.h"

#include <algorithm>
#include <cmath>

#include "model/forward.h"
#include "parallel/counter_random.h"
#include "tensor/error.h"

namespace regard {

ModelConfig default_model_config(std::int64_t vocabulary) {
  ModelConfig c;
  c.family = "llama";
  c.name = "regard default";
  c.layers = 4;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = c.value_dim = 32;
  c.width = c.embedding_width = 128;
  c.hidden = 384;
  c.vocabulary = vocabulary;
  c.context = 128;
  c.rotary_global.dim = 32;
  c.rotary_global.context = 128;
  // Sentences are short: with 100 the loss after 1,000 steps was 1.80, with 10,000 it was 1.87.
  c.rotary_global.base = 100;
  c.rotary_local = c.rotary_global;
  c.window.assign(static_cast<std::size_t>(c.layers), 0);
  c.attention_scale = 1 / std::sqrt(32.0f);
  c.query_bias = c.output_bias = c.mlp_bias = c.norm_bias = c.head_bias = Bias::no;
  c.tied_head = true;
  c.mixture.layers.assign(static_cast<std::size_t>(c.layers), false);
  return c;
}

Question question(const Tokenizer& tokenizer, const Sentence& sentence) {
  const auto encode = [&](const std::string& text) {
    std::vector<std::int32_t> ids;
    for (const Token& token : tokenizer.encode(text)) ids.push_back(token.id);
    return ids;
  };
  std::string text;
  for (std::size_t i = 0; i + 1 < sentence.words.size(); ++i) text += (i > 0 ? " " : "") + sentence.words[i];
  Question q;
  q.prompt = encode(text);
  q.answer = encode(sentence.words.back()).back();
  q.otherwise = encode(sentence.otherwise).back();
  if (q.prompt.size() != sentence.words.size())  // <s>, and a token for each word but the last
    throw Error(ErrorCode::bad_input,
                fmt::format("'{}' has {} words and {} tokens", text, sentence.words.size() - 1, q.prompt.size() - 1));
  return q;
}

std::string shape_text(const ModelConfig& c) {
  return fmt::format("{} layers, {} / {} heads of {}, width {}, hidden {}, vocabulary {}, rotary base {}", c.layers,
                     c.heads, c.kv_heads, c.head_dim, c.width, c.hidden, c.vocabulary, c.rotary_global.base);
}

// Of ten sentences in a row. What has to be found by what stands beside it is learnt last, and takes most of them.
constexpr SentenceKind kOfTen[] = {SentenceKind::sense,   SentenceKind::reference, SentenceKind::negation,
                                   SentenceKind::lookup,  SentenceKind::lookup,    SentenceKind::lookup,
                                   SentenceKind::copying, SentenceKind::copying,   SentenceKind::copying,
                                   SentenceKind::copying};

Batch default_batch(const DefaultRecipe& recipe, const Tokenizer& tokenizer, std::int64_t step) {
  Batch batch;
  for (std::int64_t i = 0; i < recipe.sentences; ++i) {
    const SentenceKind kind = kOfTen[i % 10];
    const Language language = i / 10 % 2 == 0 ? Language::english : Language::chinese;
    const auto number = static_cast<std::uint64_t>(step * recipe.sentences + i);
    const Sentence said = sentence(kind, language, number, false);
    const Question q = question(tokenizer, said);
    std::vector<std::int32_t> next(q.prompt.size(), -1);
    // Row t says word t, which is token t + 1.
    if (i / 20 % 4 == 0) std::copy(q.prompt.begin() + 1, q.prompt.end(), next.begin());
    for (const std::int64_t word : said.decided) next[word] = q.prompt[word + 1];
    next.back() = q.answer;
    CounterRandom random(RandomUse::hidden, recipe.seed, number);
    const bool hides = recipe.hidden_in > 0 && random.below(static_cast<std::uint64_t>(recipe.hidden_in)) == 0;
    batch.add(q.prompt, next, hides ? 1 + static_cast<std::int64_t>(random.below(q.prompt.size() - 2)) : -1);
  }
  return batch;
}

std::string DefaultRecipe::text() const {
  const TokenizerSpec words = micro_language_tokenizer();
  const Batch first = default_batch(*this, Tokenizer(words), 0);
  std::uint64_t sum = 0;
  const auto add = [&](std::int64_t value) { sum = CounterRandom::mix(sum ^ static_cast<std::uint64_t>(value)); };
  for (const Row& row : first.rows) add(row.token);
  for (const std::int32_t target : first.targets) add(target);
  for (const std::uint8_t visible : first.visible) add(visible);
  return fmt::format(
      "default model: {}, {} sentences, one in {} with a hidden word, checksum {:016x}, seed {}, dropout {}, {}",
      shape_text(default_model_config(std::ssize(words.pieces))), sentences, hidden_in, sum, seed, dropout, how.text());
}

bool answers(const Model& model, const Question& question) {
  State state(model.config(), 1, std::ssize(question.prompt));
  const Tensor<float, 2> resid = feed(model, state, question.prompt);
  Tensor<float, 2> said({1, model.config().vocabulary});
  logits(model, resid.view(), said.view());
  return std::max_element(said.data(), said.data() + said.size()) - said.data() == question.answer;
}

std::int64_t right_answers(const Model& model, SentenceKind kind, Language language, std::int64_t count) {
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < count; ++i)
    right += answers(model, question(model.tokenizer(), sentence(kind, language, static_cast<std::uint64_t>(i), true)));
  return right;
}

}  // namespace regard
