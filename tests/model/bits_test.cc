// Law 3 on the whole model: one value per number, however the rows are run. And law 2: looking changes nothing.

#include <gtest/gtest.h>

#include "support/targets.h"
#include "support/tiny_model.h"

namespace regard {
namespace {

using testing::all_logits;
using testing::same_bits;

class Bits : public ::testing::Test {
 protected:
  Bits()
      : file_({.context = 512, .type = DType::q4_1, .embedding_type = DType::q8_0}), model_(Model::load(file_.path())) {
    ids_ = testing::some_ids(300, model_.config().vocabulary);
    State state(model_.config());
    expected_ = all_logits(model_, state, ids_, 512);
  }
  std::vector<float> in_chunks(std::int64_t chunk, Tap* tap = nullptr) {
    State state(model_.config());
    return all_logits(model_, state, ids_, chunk, 0, tap);
  }
  testing::TinyModelFile file_;
  Model model_;
  std::vector<std::int32_t> ids_;
  std::vector<float> expected_;
};

TEST_F(Bits, OneByOne) { EXPECT_TRUE(same_bits(expected_, in_chunks(1))); }
TEST_F(Bits, ChunksOfSeven) { EXPECT_TRUE(same_bits(expected_, in_chunks(7))); }
TEST_F(Bits, ChunksOf128) { EXPECT_TRUE(same_bits(expected_, in_chunks(128))); }

// Weights packed, as for decoding: every form of the product, by one row and by many.
TEST_F(Bits, PackedWeights) {
  const Model packed = Model::load(file_.path(), Packing::all);
  EXPECT_GT(packed.packed_bytes(), 0);
  EXPECT_EQ(model_.packed_bytes(), 0);
  for (std::int64_t chunk : {1, 2, 3, 4, 512}) {
    State state(packed.config());
    EXPECT_TRUE(same_bits(expected_, all_logits(packed, state, ids_, chunk))) << chunk;
  }
}

// Rows whose output nobody wants leave in the last layer.
TEST_F(Bits, TheLastRowAlone) {
  for (std::int64_t chunk : {1, 7, 512}) {
    State state(model_.config()), next(model_.config());
    FeedOptions options;
    options.chunk = chunk;
    const Tensor<float, 2> resid = feed(model_, state, ids_, 0, options);
    std::vector<float> out(static_cast<std::size_t>(model_.config().vocabulary));
    logits(model_, resid.view(), View<float, 2>(out.data(), {1, std::ssize(out)}));
    EXPECT_TRUE(same_bits(std::vector<float>(expected_.end() - std::ssize(out), expected_.end()), out));
    // Their keys and values are all there: the text goes on with the same bits.
    const std::vector<std::int32_t> more = testing::some_ids(9, model_.config().vocabulary, 8);
    std::vector<std::int32_t> whole = ids_;
    whole.insert(whole.end(), more.begin(), more.end());
    const std::vector<float> all = all_logits(model_, next, whole, 512);
    EXPECT_TRUE(
        same_bits(std::vector<float>(all.end() - 9 * std::ssize(out), all.end()), all_logits(model_, state, more, 4)));
  }
}

TEST_F(Bits, ThreadCounts) {
  testing::on_thread_counts([&](int) {
    EXPECT_TRUE(same_bits(expected_, in_chunks(512)));
    EXPECT_TRUE(same_bits(expected_, in_chunks(1)));
  });
}

TEST_F(Bits, Targets) {
  testing::on_each_target([&](const std::string&) { EXPECT_TRUE(same_bits(expected_, in_chunks(64))); });
}

TEST_F(Bits, BesideTwoOtherSequences) {
  State state(model_.config(), 3);
  const auto second = testing::some_ids(300, model_.config().vocabulary, 2);
  const auto third = testing::some_ids(150, model_.config().vocabulary, 3);
  // Rows of all three in one pass, interleaved, in uneven steps; sequence 1 is ours.
  std::vector<float> got;
  std::vector<std::int64_t> at(3, 0);
  const std::vector<const std::vector<std::int32_t>*> texts = {&second, &ids_, &third};
  for (std::int64_t step = 0; at[1] < std::ssize(ids_); ++step) {
    std::vector<Row> rows;
    std::vector<std::int64_t> ours;
    for (std::int64_t i = 0; i < 1 + step % 5; ++i)
      for (int s : {2, 1, 0}) {
        if (at[s] >= std::ssize(*texts[s])) continue;
        if (s == 1) ours.push_back(std::ssize(rows));
        rows.push_back({(*texts[s])[at[s]], s, at[s]});
        ++at[s];
      }
    Tensor<float, 2> resid({std::ssize(rows), model_.config().width});
    forward(model_, state, rows, resid.view());
    Tensor<float, 2> out({std::ssize(rows), model_.config().vocabulary});
    logits(model_, resid.view(), out.view());
    for (std::int64_t r : ours) got.insert(got.end(), &out(r, 0), &out(r, 0) + out.shape()[1]);
  }
  EXPECT_TRUE(same_bits(expected_, got));
}

// A tap that looks at everything, readers included, and writes nothing.
class Onlooker : public Tap, public Reader {
 public:
  bool wants(Site, std::int64_t) const override { return true; }
  void at(Site, std::int64_t, std::span<const Row>, View<float, 3> value) override { seen += value.size(); }
  std::vector<Reader*> readers(std::int64_t, std::span<const Row>) override { return {this}; }
  void begin(const Problem&, int) override {}
  void tile(const WeightTile& tile, int) override { tiles += tile.lanes > 0; }
  std::int64_t seen = 0;
  std::atomic<std::int64_t> tiles = 0;
};

TEST_F(Bits, LookingChangesNothing) {
  for (std::int64_t chunk : {1, 7, 512}) {
    Onlooker tap;
    EXPECT_TRUE(same_bits(expected_, in_chunks(chunk, &tap)));
    EXPECT_GT(tap.seen, 0);
    EXPECT_GT(tap.tiles, 0);
  }
}

TEST_F(Bits, TokenLogprobs) {
  const auto run = [&](std::int64_t chunk) {
    State state(model_.config());
    TokenLogprobs logprobs(model_, ids_);
    FeedOptions options;
    options.chunk = chunk;
    options.on_rows = [&](std::int64_t first, View<const float, 2> resid) { logprobs.rows(first, resid); };
    feed(model_, state, ids_, 0, options);
    return logprobs.values();
  };
  const auto all = run(512);
  ASSERT_EQ(all.size(), ids_.size() - 1);
  EXPECT_TRUE(same_bits(all, run(1)));
  EXPECT_TRUE(same_bits(all, run(7)));
}

}  // namespace
}  // namespace regard
