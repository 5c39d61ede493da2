// Rectangles of a pattern, pooled, against the weights themselves.

#include "reading/tile_map.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/forward.h"
#include "reading/reading_tap.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kMappedTokens = 600;  // more than a chunk of rows

class Map : public ::testing::Test {
 protected:
  Map()
      : file_({.layers = 3, .heads = 6, .kv_heads = 2, .width = 96, .context = 1024}),
        model_(Model::load(file_.path())) {
    ids_ = testing::some_ids(kMappedTokens, model_.config().vocabulary);
  }
  // Every weight of a head.
  Reading weights(std::int64_t layer, std::int64_t head) const {
    ReadingRequest request;
    request.statistics = {Statistic::weights};
    request.layers = {layer};
    request.heads = {head};
    request.rows.resize(kMappedTokens);
    std::iota(request.rows.begin(), request.rows.end(), 0);
    State state(model_.config(), 1, kMappedTokens);
    ReadingTap tap(model_, request, ids_);
    FeedOptions options;
    options.tap = &tap;
    feed(model_, state, ids_, 0, options);
    return tap.finish();
  }
  static std::vector<float> flat(const TileMap& map) { return {map.cells.data(), map.cells.data() + map.cells.size()}; }
  testing::TinyModelFile file_;
  Model model_;
  std::vector<std::int32_t> ids_;
};

TEST_F(Map, CellsAreThePooledWeights) {
  const Reading r = weights(1, 4);
  for (const Rectangle& rectangle :
       {Rectangle{0, kMappedTokens, 0, kMappedTokens}, {530, 597, 100, 391}, {300, 301, 0, 7}}) {
    for (const Pooling pooling : {Pooling::max, Pooling::sum, Pooling::mean}) {
      const TileMap map = read_map(model_, ids_, {1, 4, rectangle, 13, 29, pooling});
      SCOPED_TRACE(std::string(name(pooling)));
      std::vector<float> plain;
      std::vector<double> truth;
      for (std::int64_t y = 0; y < map.cells.shape()[0]; ++y) {
        for (std::int64_t x = 0; x < map.cells.shape()[1]; ++x) {
          float sum = 0, max = 0;
          double exact = 0, cells = 0;
          for (std::int64_t i = map.rows[y]; i < map.rows[y + 1]; ++i) {
            for (std::int64_t j = map.keys[x]; j < map.keys[x + 1]; ++j) {
              const float w = r.weights(0, 0, i, j);
              sum += w, exact += w, cells += 1, max = std::max(max, w);
            }
          }
          if (pooling == Pooling::max) {
            EXPECT_EQ(map.cells(y, x), max);
          }
          plain.push_back(pooling == Pooling::max   ? max
                          : pooling == Pooling::sum ? sum
                                                    : sum / static_cast<float>(cells));
          truth.push_back(pooling == Pooling::max ? max : pooling == Pooling::sum ? exact : exact / cells);
        }
      }
      EXPECT_TRUE(testing::within_law_1(flat(map), plain, truth));
      EXPECT_EQ(map.rows.front(), rectangle.row_begin);
      EXPECT_EQ(map.keys.back(), rectangle.key_end);
    }
  }
}

TEST_F(Map, ACellForEachWeightIsTheWeights) {
  const Reading r = weights(2, 0);
  const TileMap map = read_map(model_, ids_, {2, 0, {580, 600, 500, 600}, 512, 512, Pooling::max});
  ASSERT_EQ(map.cells.shape(), (std::array<std::int64_t, 2>{20, 100}));
  for (std::int64_t y = 0; y < 20; ++y)
    for (std::int64_t x = 0; x < 100; ++x) EXPECT_EQ(map.cells(y, x), r.weights(0, 0, 580 + y, 500 + x));
}

TEST_F(Map, SameBitsOnThreadsAndTargets) {
  for (const Pooling pooling : {Pooling::max, Pooling::mean})
    testing::expect_same_bits_everywhere([&] {
      return flat(read_map(model_, ids_, {1, 5, {100, 560, 0, 560}, 40, 50, pooling}));
    });
}

TEST_F(Map, RefusesWhatIsNotThere) {
  const Rectangle all{0, kMappedTokens, 0, kMappedTokens};
  for (const MapRequest& request : std::vector<MapRequest>{{3, 0, all},
                                                           {0, 6, all},
                                                           {-1, 0, all},
                                                           {0, 0, {0, kMappedTokens + 1, 0, 1}},
                                                           {0, 0, {0, 1, 0, kMappedTokens + 1}},
                                                           {0, 0, {5, 5, 0, 1}},
                                                           {0, 0, {-1, 5, 0, 1}},
                                                           {0, 0, all, 0, 5}})
    EXPECT_THROW(read_map(model_, ids_, request), Error);
  EXPECT_THROW(parse_pooling("min"), Error);
}

TEST(EvenEdges, DifferByOneAtMostAndCoverAll) {
  EXPECT_EQ(even_edges(3, 8, 9), (std::vector<std::int64_t>{3, 4, 5, 6, 7, 8}));
  for (std::int64_t n = 1; n < 40; ++n) {
    for (std::int64_t cells = 1; cells < 45; ++cells) {
      const std::vector<std::int64_t> edges = even_edges(7, 7 + n, cells);
      ASSERT_EQ(std::ssize(edges), std::min(n, cells) + 1);
      EXPECT_EQ(edges.front(), 7);
      EXPECT_EQ(edges.back(), 7 + n);
      for (std::size_t k = 1; k < edges.size(); ++k) {
        EXPECT_GE(edges[k] - edges[k - 1], n / std::min(n, cells));
        EXPECT_LE(edges[k] - edges[k - 1], n / std::min(n, cells) + 1);
      }
    }
  }
}

TEST_F(Map, MemoryIsThePictureAndTheCache) {
  // Twice the text takes at most twice the bytes; the rectangle is never held.
  const ModelConfig& c = model_.config();
  const auto bytes = [&](std::int64_t n) { return bytes_needed(MapRequest{2, 0, {0, n, 0, n}, 64, 64}, c, 5000); };
  EXPECT_LE(bytes(1 << 16), 2 * bytes(1 << 15));
  EXPECT_LT(bytes(1 << 16), std::int64_t{1} << 32);
}

}  // namespace
}  // namespace regard
