// The model inside the program answers held-out sentences of every kind, is what the recipe says, and reaches a folder
// whatever is there.

#include "weights/default_model.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_folder.h"
#include "support/variable.h"
#include "training/default_recipe.h"
#include "training/model_folder.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kAsked = 20;  // instrumented, they take twenty times as long
#else
constexpr std::int64_t kAsked = 200;
#endif

class DefaultModel : public ::testing::Test {
 protected:
  testing::TempFolder home_;
  testing::Variable variable_{"REGARD_HOME", home_.path()};
};

bool whole(const fs::path& folder) {
  return std::ranges::all_of(default_model_files(), [&](const EmbeddedFile& file) {
    return fs::exists(folder / file.name) && testing::read_file(folder / file.name) == file.bytes;
  });
}

TEST_F(DefaultModel, AnswersHeldOutSentences) {
  const Model model = Model::load(default_model_folder());
  for (const SentenceKind kind : kSentenceKinds)
    for (const Language language : {Language::english, Language::chinese})
      EXPECT_EQ(right_answers(model, kind, language, kAsked), kAsked) << name(kind);
}

TEST_F(DefaultModel, IsTheRecipes) {
  const fs::path folder = default_model_folder();
  const Model model = Model::load(folder);
  const TokenizerSpec spec = micro_language_tokenizer();
  const ModelConfig recipe = default_model_config(std::ssize(spec.pieces));
  const ModelConfig& c = model.config();
  EXPECT_EQ(shape_text(c), shape_text(recipe));
  EXPECT_EQ(c.tied_head, recipe.tied_head);
  EXPECT_EQ(c.context, recipe.context);
  EXPECT_EQ(c.norm_epsilon, recipe.norm_epsilon);
  EXPECT_EQ(c.attention_scale, recipe.attention_scale);
  EXPECT_EQ(c.rotary_global.dim, recipe.rotary_global.dim);
  EXPECT_EQ(model.checkpoint().tokenizer.pieces, spec.pieces);
  EXPECT_EQ(recipe_of(folder), DefaultRecipe().text());
}

TEST_F(DefaultModel, ItsFolderIsMadeAgainWhenItIsSpoilt) {
  const fs::path folder = default_model_folder();
  EXPECT_TRUE(default_model_is_there());
  for (const EmbeddedFile& file : default_model_files()) {
    const fs::path path = folder / file.name;
    const auto spoilt_is_mended = [&] {
      EXPECT_FALSE(default_model_is_there());
      EXPECT_EQ(default_model_folder(), folder);
      EXPECT_TRUE(whole(folder)) << file.name;
    };
    fs::resize_file(path, 5);
    spoilt_is_mended();
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << "~";  // the same size
    spoilt_is_mended();
    fs::remove(path);
    spoilt_is_mended();
    fs::remove(path);
    fs::create_directory(path);
    spoilt_is_mended();
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.parent_path()), {}), 1) << "nothing is left beside it";
}

TEST_F(DefaultModel, ManyProcessesMayMakeItAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool right = false;
      try {
        right = whole(default_model_folder());
      } catch (...) {
      }
      ::_exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(default_model_is_there());
  EXPECT_EQ(std::distance(fs::directory_iterator(default_model_place().parent_path()), {}), 1);
}

TEST_F(DefaultModel, WithoutACacheItHasATemporaryFolder) {
  const testing::TempFolder temporary;
  const testing::Variable place("TMPDIR", temporary.path());
  testing::write_file(home_ / "file", "");
  const testing::Variable unusable("REGARD_HOME", home_ / "file");
  const pid_t child = ::fork();
  if (child == 0) {
    bool right = false;
    try {
      const fs::path folder = default_model_folder();
      right = whole(folder) && folder == default_model_folder() && folder.parent_path() == temporary.path();
    } catch (...) {
    }
    std::exit(right ? 0 : 1);  // as a program ends: it takes the folder away
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

}  // namespace
}  // namespace regard
