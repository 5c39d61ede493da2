// Training on a text: what a step learns from, and what is measured.

#include "training/text_recipe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/forward.h"
#include "parallel/counter_random.h"
#include "support/errors.h"
#include "support/temp_folder.h"
#include "training/model_folder.h"

namespace regard {
namespace {

std::string long_text() {
  std::string text;
  const CounterRandom random(RandomUse::lesson, 7);
  for (std::uint64_t i = 0; i < 3000; ++i) text += static_cast<char>(random.at(i));
  return text;
}

std::int32_t id_of(char byte) { return 1 + static_cast<unsigned char>(byte); }

TEST(TextRecipe, EveryByteOfAPieceIsToBeSaid) {
  const std::string text = long_text();
  TextRecipe recipe;
  std::set<std::vector<std::int32_t>> pieces;
  for (std::int64_t step = 0; step < 4; ++step) {
    const Batch batch = text_batch(recipe, text, step);
    const std::int64_t length = text_model_config().context;
    ASSERT_EQ(std::ssize(batch.rows), recipe.pieces * length);
    for (std::int64_t i = 0; i < recipe.pieces; ++i) {
      std::string said;
      for (std::int64_t t = 0; t < length; ++t) {
        const Row& row = batch.rows[i * length + t];
        EXPECT_EQ(std::tie(row.sequence, row.position), std::make_tuple(static_cast<std::int32_t>(i), t));
        EXPECT_EQ(row.token, t == 0 ? 0 : id_of(said.back()));
        said += static_cast<char>(batch.targets[i * length + t] - 1);
      }
      EXPECT_NE(text.find(said), std::string::npos);
      pieces.insert({batch.targets.begin() + i * length, batch.targets.begin() + (i + 1) * length});
    }
    const Batch again = text_batch(recipe, text, step);
    EXPECT_EQ(batch.targets, again.targets);
  }
  // 64 pieces from 2,745 places: 0.7 meet another on the average, five or more in one recipe of a thousand.
  EXPECT_GE(pieces.size(), 60u);
}

TEST(TextRecipe, AShortTextIsOnePiece) {
  const std::string text = "twenty bytes of text";
  const SplitText split(text);
  EXPECT_EQ(split.learnt, "twenty bytes of te");
  EXPECT_EQ(split.held_out, "xt");
  TextRecipe recipe;
  recipe.pieces = 2;
  const Batch batch = text_batch(recipe, split.learnt, 0);
  EXPECT_EQ(batch.rows.size(), 36u);
  EXPECT_EQ(batch.targets[0], id_of('t'));
  EXPECT_EQ(batch.targets[35], id_of('e'));
  testing::expect_error(ErrorCode::bad_input, {"19 bytes"}, [&] { SplitText(std::string_view(text).substr(1)); });
}

// The loss of a text is the mean over its bytes of what the forward pass says of them, each in its piece.
TEST(TextRecipe, TheLossIsTheForwardPasses) {
  const TextRecipe recipe;
  const Trainer trainer(text_model_config(), byte_tokenizer(), recipe.how, recipe.seed);
  const Model model = trainer.model();
  const std::string text = long_text().substr(0, 300);
  double sum = 0;
  for (const std::string& piece : {text.substr(0, 256), text.substr(256)}) {
    std::vector<std::int32_t> ids = {0};
    for (const char byte : piece) ids.push_back(id_of(byte));
    State state(model.config());
    Tensor<float, 2> resid({std::ssize(piece), model.config().width}), said({std::ssize(piece), 257});
    std::vector<Row> rows;
    for (std::int64_t t = 0; t < std::ssize(piece); ++t) rows.push_back({ids[t], 0, t});
    forward(model, state, rows, resid.view());
    logits(model, resid.view(), said.view());
    for (std::int64_t t = 0; t < std::ssize(piece); ++t) {
      double all = 0;
      for (std::int64_t v = 0; v < 257; ++v) all += std::exp(double{said(t, v)});
      sum += std::log(all) - double{said(t, ids[t + 1])};
    }
  }
  // What f32 may do to a byte's loss, which is below 8: 257 exponentials, each within 4 units in the last place, added
  // with a rounding each, move the logarithm of their sum by as much; four roundings of numbers below 8 are left.
  constexpr double kRounding = (257 + 4) * 0x1p-23 + 4 * 0x1p-22;
  const TextLoss said = text_loss(model, text);
  EXPECT_EQ(said.bytes, 300);
  EXPECT_NEAR(said.loss, sum / 300, kRounding);
}

// Of a long text, pieces evenly apart: of six, every second one.
TEST(TextRecipe, TheLossOfALongTextIsThatOfPiecesOfIt) {
  const TextRecipe recipe;
  const Trainer trainer(text_model_config(), byte_tokenizer(), recipe.how, recipe.seed);
  const Model model = trainer.model();
  std::string text, every_second;
  for (int i = 0; i < 6; ++i) {
    const std::string piece(256, static_cast<char>('a' + i));
    text += piece;
    if (i % 2 == 0) every_second += piece;
  }
  const TextLoss whole = text_loss(model, text, 3), half = text_loss(model, every_second, 3);
  EXPECT_EQ(whole.bytes, 3 * 256);
  EXPECT_EQ(half.bytes, whole.bytes);
  EXPECT_EQ(half.loss, whole.loss);
  EXPECT_NE(text_loss(model, text).loss, whole.loss);
}

// The folder is read back: the tokenizer gives every byte, whatever its place, and the weights are those rounded.
TEST(TextRecipe, ItsFolderReadsEveryByte) {
  const testing::TempFolder folder;
  const Trainer trainer(text_model_config(), byte_tokenizer(), TextRecipe().how, 1);
  write_model_folder(folder.path() / "m", text_model_config(), byte_tokenizer(), trainer.parameters(), "a recipe");
  const Model model = Model::load(folder.path() / "m");
  std::vector<std::int32_t> expected = {0};
  const std::string text = "a  b\n\t你好🙂 é";
  for (const char byte : text) expected.push_back(id_of(byte));
  std::vector<std::int32_t> ids;
  for (const Token& token : model.tokenizer().encode(text)) ids.push_back(token.id);
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(model.tokenizer().decode(std::span<const std::int32_t>(ids).subspan(1)), text);
  EXPECT_EQ(model.config().context, 256);
}

TEST(TextRecipe, IsAnotherForAnotherText) {
  const TextRecipe recipe;
  TextRecipe dropped;
  dropped.dropout = 0.1f;
  EXPECT_EQ(recipe.text("a"), recipe.text("a"));
  EXPECT_NE(recipe.text("a"), recipe.text("b"));
  EXPECT_NE(recipe.text("a"), dropped.text("a"));
}

}  // namespace
}  // namespace regard
