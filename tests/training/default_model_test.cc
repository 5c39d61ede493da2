// The model inside the program answers held-out sentences of every kind, and is what the recipe says.

#include "weights/default_model.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_folder.h"
#include "training/default_recipe.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

class DefaultModel : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("REGARD_HOME", home_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("REGARD_HOME"); }
  testing::TempFolder home_;
};

TEST_F(DefaultModel, AnswersHeldOutSentences) {
  const Model model = Model::load(default_model_folder());
  constexpr std::int64_t kAsked = 200;
  for (const SentenceKind kind : kSentenceKinds)
    for (const Language language : {Language::english, Language::chinese})
      EXPECT_GE(right_answers(model, kind, language, kAsked) * 100, kAsked * 99) << name(kind);
}

TEST_F(DefaultModel, IsTheRecipes) {
  const Model model = Model::load(default_model_folder());
  const TokenizerSpec spec = micro_language_tokenizer();
  const ModelConfig recipe = default_model_config(std::ssize(spec.pieces));
  const ModelConfig& c = model.config();
  EXPECT_EQ((std::array{c.layers, c.heads, c.kv_heads, c.head_dim, c.width, c.hidden, c.vocabulary, c.context}),
            (std::array{recipe.layers, recipe.heads, recipe.kv_heads, recipe.head_dim, recipe.width, recipe.hidden,
                        recipe.vocabulary, recipe.context}));
  EXPECT_EQ(c.tied_head, recipe.tied_head);
  EXPECT_EQ(model.checkpoint().tokenizer.pieces, spec.pieces);
}

TEST_F(DefaultModel, ItsFolderIsMadeAgainWhenItIsSpoilt) {
  const fs::path folder = default_model_folder();
  for (const EmbeddedFile& file : default_model_files()) {
    const auto holds = [&] {
      std::ifstream in(folder / file.name, std::ios::binary);
      return std::string((std::istreambuf_iterator<char>(in)), {}) == file.bytes;
    };
    EXPECT_TRUE(holds()) << file.name;
    fs::resize_file(folder / file.name, 5);
    EXPECT_EQ(default_model_folder(), folder);
    EXPECT_TRUE(holds()) << file.name;
    std::ofstream(folder / file.name, std::ios::in | std::ios::out | std::ios::binary) << "~";  // the same size
    EXPECT_FALSE(holds());
    default_model_folder();
    EXPECT_TRUE(holds()) << file.name;
  }
}

}  // namespace
}  // namespace regard
