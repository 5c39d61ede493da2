// The laws that need no reference: the books balance, an edit is what it says, tiles keep their promises, and what is
// malformed is refused by name.

#include <gtest/gtest.h>

#include <functional>

#include "attention/forms.h"
#include "support/errors.h"

namespace regard::test {
namespace {

// How far the weights of a row over `keys` keys may be from 1 together. Of the sum that they are divided by: one
// rounding per key and per block merged, an exp of 1 ulp per key and two per merge. Of the weights: exp, reciprocal,
// product. In units of 2^-24, relative to the numbers themselves, which are 1 together.
double books_bound(std::int64_t keys) {
  const double blocks = static_cast<double>(keys / 128 + 2);
  return (std::min<double>(static_cast<double>(keys), 128) + 6 * blocks + 2 + 4) * 0x1p-24;
}

// ---- The books balance ----------------------------------------------------------------------------------------------

TEST(Laws, WeightsAndTheSinkAreOneTogether) {
  for (const bool sinks : {false, true}) {
    for (const std::int64_t length : {1, 3, 127, 128, 129, 1000}) {
      TestProblem made(shape_of(4, length, 4, 2));
      made.problem.mask.causal = true;
      if (sinks) made.sinks({0.5f, -3, 4, -kInfinity});
      on_every_form([&](const std::string& form) {
        SCOPED_TRACE(form);
        const Result result = run(made.problem);
        const Tensor<float, 3> weight = read_pattern(made.problem, result);
        for (std::int64_t r = 0; r < 4; ++r) {
          for (std::int64_t h = 0; h < 4; ++h) {
            const RowSoftmax softmax = result.softmax(r, h);
            if (softmax.sum == 0) continue;
            double sum = sinks ? std::exp(double{made.sink_scores[h]} - softmax.max) / softmax.sum : 0;
            for (std::int64_t j = 0; j < length; ++j) sum += weight(r, h, j);
            EXPECT_NEAR(sum, 1, books_bound(length));
          }
        }
      });
    }
  }
}

TEST(Laws, OutputsAreTheWeightedValues) {
  const TestProblem made(shape_of(6, 300, 4, 2));
  const Result result = run(made.problem);
  const Tensor<float, 3> weight = pattern(made.problem, result);
  for (std::int64_t r = 0; r < 6; ++r) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t e = 0; e < 9; ++e) {
        double sum = 0, size = 0;
        for (std::int64_t j = 0; j < 300; ++j) {
          const double part = double{weight(r, h, j)} * stored(made.values[0].rows, j, h / 2, e);
          sum += part;
          size += std::abs(part);
        }
        EXPECT_NEAR(result.out(r, h, e), sum, 2 * books_bound(300) * size);
      }
    }
  }
}

// ---- Edits of single scores -----------------------------------------------------------------------------------------

// Law 6: without an edge, the others are what they were, over what is left.
TEST(Laws, ABlockedEdgeRenormalisesItsRow) {
  for (const std::int64_t length : {2, 20, 300}) {
    TestProblem plain(shape_of(3, length)), edited(shape_of(3, length));
    const std::int64_t key = length / 2;
    edited.edges({{1, 0, key, key + 1}});
    const Result of_plain = run(plain.problem);
    const Tensor<float, 3> before = pattern(plain.problem, of_plain);
    on_every_form([&](const std::string& form) {
      SCOPED_TRACE(form);
      const Result result = run(edited.problem);
      const Tensor<float, 3> after = read_pattern(edited.problem, result);
      for (std::int64_t j = 0; j < length; ++j) {
        const double left = 1 - double{before(1, 0, key)};
        const double expected = j == key ? 0 : before(1, 0, j) / left;
        // `left` inherits the error of all weights.
        EXPECT_NEAR(after(1, 0, j), expected, (2 + 1 / left) * books_bound(length) * expected) << j;
        EXPECT_EQ(after(1, 1, j), before(1, 1, j));
        EXPECT_EQ(after(0, 0, j), before(0, 0, j));
        EXPECT_EQ(after(2, 0, j), before(2, 0, j));
      }
      const auto bytes = 9 * sizeof(float);
      EXPECT_EQ(std::memcmp(&result.out(1, 1, 0), &of_plain.out(1, 1, 0), bytes), 0);
      EXPECT_NE(std::memcmp(&result.out(1, 0, 0), &of_plain.out(1, 0, 0), bytes), 0);
    });
  }
}

TEST(Laws, AddingTheLogarithmOfXScalesAWeightByX) {
  for (const double x : {0.25, 0.9, 1.0, 3.0}) {
    TestProblem plain(shape_of(2, 200)), edited(shape_of(2, 200));
    edited.edges({{0, 1, 30, 33, static_cast<float>(std::log(x))}});
    const Tensor<float, 3> before = pattern(plain.problem, run(plain.problem));
    on_every_form([&](const std::string& form) {
      SCOPED_TRACE(form);
      const Tensor<float, 3> after = read_pattern(edited.problem, run(edited.problem));
      double sum = 0;
      for (std::int64_t j = 0; j < 200; ++j) sum += before(0, 1, j) * (j >= 30 && j < 33 ? x : 1);
      for (std::int64_t j = 0; j < 200; ++j) {
        const double expected = before(0, 1, j) * (j >= 30 && j < 33 ? x : 1) / sum;
        // Scores of up to about 8 are rounded once more where the edit is added, and the logarithm is rounded.
        EXPECT_NEAR(after(0, 1, j), expected, (4 * books_bound(200) + 10 * 0x1p-23) * expected) << j;
      }
    });
  }
}

// Law 5: an edit that changes nothing changes nothing.
TEST(Laws, AddingZeroIsTheIdentity) {
  TestProblem plain(shape_of(9, 300)), edited(shape_of(9, 300));
  std::vector<EdgeEdit> edges;
  for (std::int64_t r = 0; r < 9; ++r) {
    for (std::int32_t h : {0, 1}) edges.push_back({r, h, 0, 300, 0.0f});
  }
  edited.edges(edges);
  on_every_form([&](const std::string& form) {
    const Result a = run(plain.problem), b = run(edited.problem);
    EXPECT_TRUE(same_bits(a, b)) << form;
    EXPECT_TRUE(same_bits(read_pattern(plain.problem, a), read_pattern(edited.problem, b))) << form;
  });
}

TEST(Laws, ABlockedEdgeStaysBlockedWhateverTheBiasSays) {
  TestProblem made(shape_of(3, 10));
  Tensor<float, 3> bias({3, 2, 10});
  for (float& b : std::span(bias.data(), bias.size())) b = kInfinity;
  made.bias(std::move(bias));
  std::vector<EdgeEdit> edges;
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int32_t h : {0, 1}) edges.push_back({r, h, 0, 10});
  }
  made.edges(edges);
  for (const Outcome& outcome : outcomes_of(made.problem)) {
    SCOPED_TRACE(outcome.form);
    for (std::int64_t r = 0; r < 3; ++r) expect_saw_nothing(outcome, r, 1);
  }
}

// ---- Readers --------------------------------------------------------------------------------------------------------

TEST(Laws, TilesAreTheSameWithAnyNumberOfThreads) {
  Shape shape = shape_of(1, 1, 6, 2);
  shape.queries = {40, 1, 9};
  shape.lengths = {300, 1000, 130};
  TestProblem made(shape);
  made.problem.mask.causal = true;
  made.problem.mask.window_left = 200;
  const Result result = run(made.problem);
  const auto softmax = std::as_const(result.softmax).view();
  std::unique_ptr<PatternReader> first;
  on_every_form([&](const std::string& form) {
    auto reader = std::make_unique<PatternReader>();
    Reader* readers[] = {reader.get()};
    read(made.problem, softmax, readers);
    EXPECT_EQ(reader->complaints(), std::vector<std::string>{}) << form;
    EXPECT_EQ(reader->unseen, 0) << form;
    if (first == nullptr) {
      first = std::move(reader);
      EXPECT_TRUE(same_bits(first->weight, pattern(made.problem, result)));
      return;
    }
    EXPECT_TRUE(same_bits(first->weight, reader->weight)) << form;
    EXPECT_TRUE(same_bits(first->score, reader->score)) << form;
  });
}

// Padded lanes behind the last must not count as lanes that see: masks that are applied per score, not per range.
TEST(Laws, TilesHiddenByBiasOrEdgesAreNotHandedOut) {
  for (const std::int64_t queries : {1, 3, 12}) {
    TestProblem biased(shape_of(queries, 300)), edited(shape_of(queries, 300));
    Tensor<float, 3> bias({queries, 2, 300});
    std::vector<EdgeEdit> edges;
    for (std::int64_t r = 0; r < queries; ++r) {
      for (std::int32_t h : {0, 1}) {
        for (std::int64_t j = 128; j < 256; ++j) bias(r, h, j) = -kInfinity;
        edges.push_back({r, h, 128, 256});
      }
    }
    biased.bias(std::move(bias));
    edited.edges(edges);
    for (const TestProblem* made : {&biased, &edited}) {
      const Result result = run(made->problem);
      on_every_form([&](const std::string& form) {
        PatternReader reader;
        Reader* readers[] = {&reader};
        read(made->problem, std::as_const(result.softmax).view(), readers);
        EXPECT_EQ(reader.unseen, 0) << form << ", " << queries << " rows";
      });
    }
  }
}

// weight = exp(score - max) / sum: what a reader may compute by itself from what a tile holds.
TEST(Laws, ScoresAndWeightsOfATileBelongTogether) {
  class Checker final : public Reader {
   public:
    void begin(const Problem&, int) override {}
    void tile(const WeightTile& tile, int) override {
      for (int lane = 0; lane < tile.lanes; ++lane) {
        const RowSoftmax softmax = tile.softmax[lane];
        for (std::int64_t key = 0; key < tile.keys; ++key) {
          const double score = tile.score[key * tile.stride + lane];
          const double expected = std::exp(score - softmax.max) / softmax.sum;
          // exp, reciprocal, product; and the difference of scores, which exp magnifies.
          const double bound = expected * (4 + std::abs(score - softmax.max)) * 0x1p-24;
          worst = std::max(worst, std::abs(tile.weight[key * tile.stride + lane] - expected) - bound);
          ++cells;
        }
      }
    }
    double worst = -1;
    std::int64_t cells = 0;
  };
  const TestProblem made(shape_of(13, 260, 4, 2));
  const Result result = run(made.problem);
  for (const std::string& target : testing::tested_targets()) {
    const regard::testing::Restore restore;
    set_target(target);
    set_thread_count(1);
    Checker checker;
    Reader* readers[] = {&checker};
    read(made.problem, std::as_const(result.softmax).view(), readers);
    EXPECT_EQ(checker.cells, 13 * 4 * 260);
    EXPECT_LE(checker.worst, 0) << target;
  }
}

TEST(Laws, BlocksThatNobodySeesAreNotHandedOut) {
  class Counter final : public Reader {
   public:
    void begin(const Problem&, int) override {}
    void tile(const WeightTile& tile, int) override { blocks.insert(tile.key_begin / 128); }
    std::set<std::int64_t> blocks;
  };
  TestProblem made(shape_of(5, 900));
  std::vector<std::uint8_t> visible(900, 1);
  std::fill(visible.begin() + 128, visible.begin() + 384, 0);
  made.visible(0, visible);
  made.problem.mask.causal = true;
  for (QueryRow& row : made.query_rows) row.position = 600;
  made.problem.mask.window_left = 560;
  const Result result = run(made.problem);
  const regard::testing::Restore restore;
  set_thread_count(1);
  Counter counter;
  Reader* readers[] = {&counter};
  read(made.problem, std::as_const(result.softmax).view(), readers);
  EXPECT_EQ(counter.blocks, (std::set<std::int64_t>{0, 3, 4}));
}

// ---- What is malformed is refused -----------------------------------------------------------------------------------

struct Malformed {
  const char* name;  // what the message must say
  std::function<void(TestProblem&)> spoil;
};

TEST(Laws, MalformedProblemsAreRefusedByName) {
  const float nan = std::nanf("");
  const std::vector<Malformed> table = {
      {"channels", [](TestProblem& p) { p.problem.q.shape[2] = 0; }},
      {"513 channels", [](TestProblem& p) { p.problem.q.shape[2] = 513; }},
      {"value_channels", [](TestProblem& p) { p.problem.value_channels = 0; }},
      {"value_channels", [](TestProblem& p) { p.problem.value_channels = 513; }},
      {"q has shape", [](TestProblem& p) { p.problem.q.shape[0] = -1; }},
      {"q has shape", [](TestProblem& p) { p.problem.q.shape[1] = -2; }},
      {"q has no data", [](TestProblem& p) { p.problem.q.data = nullptr; }},
      {"heads", [](TestProblem& p) { p.problem.q.shape[1] = (1 << 20) + 2; }},
      {"kv_heads", [](TestProblem& p) { p.problem.kv_heads = 0; }},
      {"kv_heads", [](TestProblem& p) { p.problem.kv_heads = -2; }},
      {"key/value heads", [](TestProblem& p) { p.problem.kv_heads = 3; }},
      {"rows", [](TestProblem& p) { p.problem.rows = p.problem.rows.first(3); }},
      {"sequence 7", [](TestProblem& p) { p.query_rows[1].sequence = 7; }},
      {"sequence -1", [](TestProblem& p) { p.query_rows[1].sequence = -1; }},
      {"sequence 0 of 0", [](TestProblem& p) { p.problem.sequences = {}; }},
      {"row 2 has position", [](TestProblem& p) { p.query_rows[2].position = std::int64_t{1} << 61; }},
      {"row 2 has position", [](TestProblem& p) { p.query_rows[2].position = -(std::int64_t{1} << 61); }},
      {"length", [](TestProblem& p) { p.sequences[0].length = -1; }},
      {"keys of sequence 0 have no pages", [](TestProblem& p) { p.sequences[0].k.pages = nullptr; }},
      {"values of sequence 0 have no pages", [](TestProblem& p) { p.sequences[0].v.pages = nullptr; }},
      {"page 0 of keys of sequence 0", [](TestProblem& p) { p.keys[0].pages[0] = nullptr; }},
      {"page 0 of values of sequence 0", [](TestProblem& p) { p.values[0].pages[0] = nullptr; }},
      {"rows in a page", [](TestProblem& p) { p.sequences[0].k.page_rows = 0; }},
      {"rows in a page", [](TestProblem& p) { p.sequences[0].v.page_rows = -4; }},
      {"keys of sequence 0 are", [](TestProblem& p) { p.sequences[0].k.dtype = DType::q8_0; }},
      {"values of sequence 0 are", [](TestProblem& p) { p.sequences[0].v.dtype = DType::f64; }},
      {"visible", [](TestProblem& p) { p.visible(0, std::vector<std::uint8_t>(8, 1)); }},
      {"segment", [](TestProblem& p) { p.segments(0, std::vector<std::int32_t>(10, 1)); }},
      {"window_left", [](TestProblem& p) { p.problem.mask.window_left = 0; }},
      {"window_left", [](TestProblem& p) { p.problem.mask.window_left = -2; }},
      {"window_left", [](TestProblem& p) { p.problem.mask.window_left = std::int64_t{1} << 62; }},
      {"window_right", [](TestProblem& p) { p.problem.mask.window_right = -2; }},
      {"window_right", [](TestProblem& p) { p.problem.mask.window_right = std::int64_t{1} << 62; }},
      {"edge (row 5",
       [](TestProblem& p) {
         p.edges({{5, 0, 0, 1}});
       }},
      {"edge (row -1",
       [](TestProblem& p) {
         p.edges({{-1, 0, 0, 1}});
       }},
      {"head 2",
       [](TestProblem& p) {
         p.edges({{0, 2, 0, 1}});
       }},
      {"head -1",
       [](TestProblem& p) {
         p.edges({{0, -1, 0, 1}});
       }},
      {"keys 0..10",
       [](TestProblem& p) {
         p.edges({{0, 0, 0, 10}});
       }},
      {"keys -1..2",
       [](TestProblem& p) {
         p.edges({{0, 0, -1, 2}});
       }},
      {"keys 3..3",
       [](TestProblem& p) {
         p.edges({{0, 0, 3, 3}});
       }},
      {"adds nan",
       [nan](TestProblem& p) {
         p.edges({{0, 0, 0, 1, nan}});
       }},
      {"adds inf",
       [](TestProblem& p) {
         p.edges({{0, 0, 0, 1, kInfinity}});
       }},
      {"out of order",
       [](TestProblem& p) {
         p.edges({{1, 0, 0, 1}, {0, 0, 0, 1}});
       }},
      {"out of order",
       [](TestProblem& p) {
         p.edges({{1, 1, 0, 1}, {1, 0, 0, 1}});
       }},
      {"overlaps",
       [](TestProblem& p) {
         p.edges({{1, 1, 0, 4}, {1, 1, 3, 5}});
       }},
      {"bias",
       [](TestProblem& p) {
         p.bias(Tensor<float, 3>({4, 2, 9}));
       }},
      {"row axis",
       [](TestProblem& p) {
         p.bias(Tensor<float, 3>({6, 2, 9}));
       }},
      {"head axis",
       [](TestProblem& p) {
         p.bias(Tensor<float, 3>({5, 3, 9}));
       }},
      {"key axis",
       [](TestProblem& p) {
         p.bias(Tensor<float, 3>({5, 2, 8}));
       }},
      {"key axis",
       [](TestProblem& p) {
         p.bias(Tensor<float, 3>({5, 2, 1}));
       }},
      {"scale", [nan](TestProblem& p) { p.problem.scale = nan; }},
      {"scale", [](TestProblem& p) { p.problem.scale = -kInfinity; }},
      {"softcap", [](TestProblem& p) { p.problem.softcap = -1; }},
      {"softcap", [nan](TestProblem& p) { p.problem.softcap = nan; }},
      {"softcap", [](TestProblem& p) { p.problem.softcap = kInfinity; }},
      {"sinks",
       [](TestProblem& p) {
         p.sinks({1, 2, 3});
       }},
  };
  for (const Malformed& malformed : table) {
    SCOPED_TRACE(malformed.name);
    TestProblem made(shape_of(5, 9));
    ASSERT_NO_THROW(validate(made.problem));
    const Result good = run(made.problem);
    malformed.spoil(made);
    const std::vector<std::string> words = {"attention", malformed.name};
    regard::testing::expect_error(ErrorCode::bad_input, words, [&] { validate(made.problem); });
    // Whoever computes validates first, whatever else is handed over.
    Tensor<float, 3> out({5, 2, 9});
    const auto softmax = std::as_const(good.softmax).view();
    regard::testing::expect_error(ErrorCode::bad_input, words, [&] { forward(made.problem, out.view()); });
    regard::testing::expect_error(ErrorCode::bad_input, words, [&] { read(made.problem, softmax, {}); });
    regard::testing::expect_error(ErrorCode::bad_input, words, [&] { full_pattern(made.problem, softmax); });
  }
}

TEST(Laws, OutputsAndRequestsOfTheWrongShapeAreRefused) {
  const TestProblem made(shape_of(5, 9));
  const Problem& problem = made.problem;
  const Result result = run(problem);
  const auto softmax = std::as_const(result.softmax).view();
  Tensor<float, 3> out({5, 2, 9}), wrong({5, 2, 7});
  Tensor<RowSoftmax, 2> wrong_softmax({5, 3});
  Tensor<float, 2> wrong_lse({4, 2});
  const std::vector<std::int64_t> row = {2}, no_row = {5}, negative_row = {-1};
  const std::vector<std::int32_t> head = {1}, no_head = {2}, negative_head = {-1};
  const auto expect = [](const char* word, const std::function<void()>& work) {
    SCOPED_TRACE(word);
    regard::testing::expect_error(ErrorCode::bad_input, {"attention", word}, work);
  };
  expect("axis 2 of out", [&] { forward(problem, wrong.view()); });
  expect("out has no data", [&] { forward(problem, View<float, 3>(nullptr, {5, 2, 9})); });
  expect("axis 1 of softmax", [&] { forward(problem, out.view(), wrong_softmax.view()); });
  expect("axis 0 of log_sum_exp", [&] { forward(problem, out.view(), {}, wrong_lse.view()); });
  expect("softmax", [&] { read(problem, {}, {}); });
  expect("softmax", [&] { read(problem, std::as_const(wrong_softmax).view(), {}); });
  expect("softmax", [&] { full_pattern(problem, {}); });
  expect("row 5", [&] { weights(problem, softmax, no_row, head, 0, 9); });
  expect("row -1", [&] { weights(problem, softmax, negative_row, head, 0, 9); });
  expect("head 2", [&] { weights(problem, softmax, row, no_head, 0, 9); });
  expect("head -1", [&] { weights(problem, softmax, row, negative_head, 0, 9); });
  expect("-1..4", [&] { weights(problem, softmax, row, head, -1, 4); });
  expect("5..4", [&] { weights(problem, softmax, row, head, 5, 4); });
  expect("queries", [&] { query_rows(1, -2, 4); });
  // Beyond the last key there is nothing to read, and that is a number too.
  const Tensor<float, 3> beyond = weights(problem, softmax, row, head, 7, 12);
  EXPECT_GT(beyond(0, 0, 1), 0);
  for (std::int64_t j = 2; j < 5; ++j) EXPECT_EQ(beyond(0, 0, j), 0);
}

}  // namespace
}  // namespace regard::test
