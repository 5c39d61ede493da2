// Steps of training: what they do, and that they depend on nothing but the recipe and their number.

#include "training/trainer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/errors.h"
#include "support/targets.h"
#include "support/temp_folder.h"
#include "training/default_recipe.h"
#include "training/model_folder.h"
#include "training/model_pass.h"

namespace regard {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::same_bits;

// The default model's recipe, much smaller.
struct Small {
  DefaultRecipe recipe;
  TokenizerSpec spec = micro_language_tokenizer();
  Tokenizer tokenizer{spec};
  ModelConfig config = default_model_config(std::ssize(spec.pieces));

  Small() {
    recipe.sentences = 10;
    recipe.how.steps = 8;
    recipe.how.rise = 3;
    config.layers = 2;
    config.width = config.embedding_width = 32;
    config.hidden = 48;
    config.heads = 2;
    config.kv_heads = 1;
    config.head_dim = config.value_dim = 16;
    config.rotary_global.dim = config.rotary_local.dim = 16;
    config.attention_scale = 0.25f;
  }
  Trainer trainer() const { return Trainer(config, spec, recipe.how, recipe.seed); }
  void run(Trainer& trainer, std::int64_t to) const {
    while (trainer.steps_done() < to) trainer.step(default_batch(recipe, tokenizer, trainer.steps_done()));
  }
};

std::vector<float> numbers(const Trainer& trainer) {
  std::vector<float> all(trainer.parameters().values().begin(), trainer.parameters().values().end());
  all.insert(all.end(), trainer.losses().begin(), trainer.losses().end());
  return all;
}

TEST(Trainer, SameBitsOnEveryTargetAndThreadCount) {
  const Small small;
  testing::expect_same_bits_everywhere([&] {
    Trainer trainer = small.trainer();
    small.run(trainer, 3);
    return numbers(trainer);
  });
}

TEST(Trainer, GoesOnToTheSameBits) {
  const Small small;
  testing::TempFolder folder;
  const fs::path state = folder.path() / "state";
  Trainer whole = small.trainer();
  small.run(whole, 8);
  for (const std::int64_t stop : {1, 5}) {
    {
      Trainer first = small.trainer();
      small.run(first, stop);
      first.save(state, small.recipe.text());
    }
    Trainer second = small.trainer();
    second.resume(state, small.recipe.text());
    EXPECT_EQ(second.steps_done(), stop);
    small.run(second, 8);
    EXPECT_TRUE(same_bits(numbers(whole), numbers(second)));
  }
  Trainer other = small.trainer();
  expect_error(ErrorCode::bad_input, {"another recipe"}, [&] { other.resume(state, "another"); });
  // Any bit of what it holds.
  const auto bytes = fs::file_size(state);
  for (std::uintmax_t at = bytes - 1; at > bytes / 8; at = at * 3 / 4) {
    const auto turn = [&] {
      std::fstream file(state, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const char turned = static_cast<char>(file.get() ^ 1);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(turned);
    };
    turn();
    expect_error(ErrorCode::bad_input, {"is damaged"}, [&] { other.resume(state, small.recipe.text()); });
    turn();
  }
  other.resume(state, small.recipe.text());
  std::ofstream(state, std::ios::app) << "more";
  EXPECT_TRUE(testing::error_of([&] { other.resume(state, small.recipe.text()); }));
  fs::resize_file(state, 100);
  EXPECT_TRUE(testing::error_of([&] { other.resume(state, small.recipe.text()); }));
  expect_error(ErrorCode::not_found, {"nowhere"}, [&] { other.resume(folder.path() / "nowhere", ""); });
}

TEST(Trainer, LearnsABatchByHeart) {
  Small small;
  small.recipe.how.steps = 60;
  Trainer trainer = small.trainer();
  const Batch batch = default_batch(small.recipe, small.tokenizer, 0);
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) (i == 0 ? first : last) = trainer.step(batch).loss;
  EXPECT_NEAR(first, std::log(static_cast<double>(small.config.vocabulary)), 1.5);  // it knows nothing yet
  EXPECT_LT(last, first / 3);
}

// AdamW in double, by the book.
TEST(Trainer, TheOptimizerIsAdamW) {
  const Small small;
  AdamW how{.rate = 0.01f, .weight_decay = 0.2f, .clip = 0.5f, .rise = 2, .steps = 10, .floor = 0.1f};
  Parameters weights(small.config), gradients(small.config);
  testing::Numbers random(5);
  for (float& w : weights.values()) w = random.next();
  std::vector<double> w(weights.values().begin(), weights.values().end()), m(w.size()), v(w.size());
  std::vector<bool> decays(w.size()), used(w.size());
  for (const Parameters::Place& place : weights.places())
    for (std::int64_t i = 0; i < place.rows * place.cols; ++i) {
      used[place.begin + i] = true;
      decays[place.begin + i] = !place.vector;
    }
  Moments moments(std::ssize(weights.values()));
  for (int t = 0; t < 6; ++t) {
    double squares = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      gradients.values()[i] = used[i] ? random.next(t == 3 ? 1e-4f : 1) : 0.0f;
      squares += double{gradients.values()[i]} * gradients.values()[i];
    }
    const double size = step(how, t, gradients, moments, weights);
    EXPECT_NEAR(size, std::sqrt(squares), 1e-12 * size);
    const double factor = size > how.clip ? how.clip / size : 1;
    EXPECT_EQ(factor == 1, t == 3) << "one step is small enough not to be clipped";
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = gradients.values()[i] * factor, rate = how.rate_at(t);
      m[i] = how.beta1 * m[i] + (1 - double{how.beta1}) * g;
      v[i] = how.beta2 * v[i] + (1 - double{how.beta2}) * g * g;
      const double first = m[i] / (1 - std::pow(double{how.beta1}, t + 1));
      const double second = v[i] / (1 - std::pow(double{how.beta2}, t + 1));
      w[i] = w[i] * (decays[i] ? 1 - rate * how.weight_decay : 1) - rate * first / (std::sqrt(second) + how.epsilon);
    }
  }
  // A weight near 1 is rounded a few times a step.
  double worst = 0;
  for (std::size_t i = 0; i < w.size(); ++i)
    if (used[i]) worst = std::max(worst, std::fabs(w[i] - weights.values()[i]));
  EXPECT_LT(worst, 6 * 4 * 0x1p-23);
  gradients.values()[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before(weights.values().begin(), weights.values().end());
  expect_error(ErrorCode::bad_input, {"step 6", "finite"}, [&] { step(how, 6, gradients, moments, weights); });
  EXPECT_TRUE(same_bits(std::span<const float>(before), std::span<const float>(weights.values())));
}

TEST(Trainer, TheScheduleRisesAndFalls) {
  const AdamW how{.rate = 1, .rise = 4, .steps = 104, .floor = 0.25f};
  EXPECT_FLOAT_EQ(how.rate_at(0), 0.25f);
  EXPECT_FLOAT_EQ(how.rate_at(3), 1);
  EXPECT_FLOAT_EQ(how.rate_at(54), 0.625f);  // half way: the mean of both ends
  EXPECT_FLOAT_EQ(how.rate_at(104), 0.25f);
  EXPECT_FLOAT_EQ(how.rate_at(1000), 0.25f);
}

TEST(ModelFolder, HoldsTheModelRoundedToBf16) {
  const Small small;
  Trainer trainer = small.trainer();
  small.run(trainer, 2);
  testing::TempFolder folder;
  write_model_folder(folder.path() / "model", small.config, small.spec, trainer.parameters(), "what was done");
  const Model model = Model::load(folder.path() / "model");
  EXPECT_EQ(recipe_of(folder.path() / "model"), "what was done");
  EXPECT_EQ(recipe_of(folder.path()), "");
  EXPECT_EQ(model.config().heads, 2);
  EXPECT_EQ(model.config().context, 128);
  Parameters stored(model.checkpoint()), exact(trainer.model().checkpoint());
  ASSERT_EQ(stored.places().size(), exact.places().size());
  for (const Parameters::Place& place : exact.places()) {
    const View<float, 2> a = exact.at(place.name), b = stored.at(place.name);
    for (std::int64_t r = 0; r < a.shape[0]; ++r)
      for (std::int64_t c = 0; c < a.shape[1]; ++c)
        ASSERT_NEAR(a(r, c), b(r, c), std::fabs(a(r, c)) * 0x1p-8) << place.name;
  }
  for (const char* text : {"mary and tom went to the park , and we called him", "这 个 果酱 来自 苹果 ， 它 很",
                           "我吃了一个苹果，它很", ""}) {
    const auto ids = [&](const Tokenizer& tokenizer) {
      std::vector<std::int32_t> all;
      for (const Token& token : tokenizer.encode(text)) all.push_back(token.id);
      return all;
    };
    EXPECT_EQ(ids(model.tokenizer()), ids(small.tokenizer)) << text;
  }
  EXPECT_EQ(model.tokenizer().encode("我吃了一个苹果，它很").size(), 9u);  // with <s>
  EXPECT_TRUE(testing::error_of([&] { model.tokenizer().encode("an unheard word"); }));
}

}  // namespace
}  // namespace regard
