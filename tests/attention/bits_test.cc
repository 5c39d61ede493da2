// Law 3: a row has the same bits however it is computed. Every comparison here is of bytes.

#include <gtest/gtest.h>

#include <numeric>

#include "attention/forms.h"

namespace regard::test {
namespace {

// Everything that a problem gives, as bytes that can be compared.
struct Everything {
  Result result;
  Tensor<float, 3> weight;
};

Everything everything(const Problem& problem) {
  Result result = run(problem);
  Tensor<float, 3> weight = read_pattern(problem, result);
  return {std::move(result), std::move(weight)};
}

bool same(const Everything& a, const Everything& b) {
  return same_bits(a.result, b.result) && same_bits(a.weight, b.weight);
}

// On every target and thread count: `make` gives the same bytes as `expected`.
template <class Make>
void expect_everywhere(const Everything& expected, Make make) {
  on_every_form([&](const std::string& form) { EXPECT_TRUE(same(expected, make())) << form; });
}

// Rows of `part`, which are rows `chosen` of `whole`.
void expect_rows(const Everything& whole, const Everything& part, const std::vector<std::int64_t>& chosen) {
  const auto compare = [&](const auto& all, const auto& some, const char* name) {
    const std::int64_t count = std::ssize(chosen);
    ASSERT_EQ(some.shape()[0], count);
    if (some.size() == 0) return;
    const std::size_t bytes = static_cast<std::size_t>(some.size() / count) * sizeof(*some.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto* a = reinterpret_cast<const char*>(all.data()) + static_cast<std::size_t>(chosen[i]) * bytes;
      const auto* b = reinterpret_cast<const char*>(some.data()) + static_cast<std::size_t>(i) * bytes;
      EXPECT_EQ(std::memcmp(a, b, bytes), 0) << name << " of row " << chosen[i];
    }
  };
  compare(whole.result.out, part.result.out, "out");
  compare(whole.result.softmax, part.result.softmax, "softmax");
  compare(whole.result.log_sum_exp, part.result.log_sum_exp, "log_sum_exp");
  compare(whole.weight, part.weight, "weight");
}

// A problem with a little of everything.
std::unique_ptr<TestProblem> rich(std::int64_t queries, std::int64_t length, std::int64_t group = 3) {
  Shape shape = shape_of(queries, length, 2 * group, 2, 24, 19);
  auto made = std::make_unique<TestProblem>(shape);
  made->problem.mask.causal = true;
  made->problem.mask.window_left = length - length / 4;
  made->problem.softcap = 6;
  std::vector<float> sinks(static_cast<std::size_t>(shape.heads), 0.5f);
  sinks[1] = -kInfinity;
  made->sinks(sinks);
  std::vector<EdgeEdit> edges;
  for (std::int64_t r = 0; r < queries; r += 2) {
    edges.push_back({r, 0, length / 3, length / 3 + 1, -kInfinity});
    edges.push_back({r, static_cast<std::int32_t>(shape.heads - 1), 0, length / 2, 0.7f});
  }
  made->edges(edges);
  std::vector<std::uint8_t> visible(static_cast<std::size_t>(length), 1);
  for (std::int64_t j = 0; j < length; j += 11) visible[j] = 0;
  made->visible(0, visible);
  return made;
}

TEST(Bits, TargetsAndThreads) {
  const regard::testing::Restore restore;
  const auto made = rich(37, 300);
  expect_everywhere(everything(made->problem), [&] { return everything(made->problem); });
}

TEST(Bits, ARowAloneAndInABatch) {
  const auto made = rich(37, 300);
  const Everything whole = everything(made->problem);
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    for (const std::int64_t row : {0, 1, 17, 36}) {
      const ChosenRows alone(made->problem, {row});
      expect_rows(whole, everything(alone.problem), {row});
    }
  });
}

TEST(Bits, RowsInChunks) {
  const auto made = rich(37, 300);
  const Everything whole = everything(made->problem);
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    for (std::int64_t begin = 0; begin < 37; begin += 7) {
      const std::vector<std::int64_t> rows = keys_between(begin, std::min<std::int64_t>(begin + 7, 37));
      const ChosenRows chunk(made->problem, rows);
      expect_rows(whole, everything(chunk.problem), rows);
    }
  });
}

TEST(Bits, RowsInAnyOrderAndTwice) {
  const auto made = rich(37, 300);
  const Everything whole = everything(made->problem);
  std::vector<std::int64_t> rows = keys_between(0, 37);
  std::shuffle(rows.begin(), rows.end(), std::mt19937(5));
  rows.insert(rows.end(), {4, 4, 30, 4});
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    const ChosenRows mixed(made->problem, rows);
    expect_rows(whole, everything(mixed.problem), rows);
  });
}

// Few lanes take other tiles than many, and several threads share the keys of a row: groups on both sides of each
// change of form, and keys enough for many blocks.
TEST(Bits, DecodeAndPrefill) {
  for (const std::int64_t group : {1, 2, 3, 4, 5, 8, 9}) {
    for (const std::int64_t length : {1000, 5000}) {
      if (length == 5000 && group % 2 == 1) continue;
      const auto made = rich(9, length, group);
      set_target("best");
      const Everything whole = everything(made->problem);
      for (const std::string& target : testing::tested_targets()) {
        set_target(target);
        for (int threads : {1, 2, 3}) {
          set_thread_count(threads);
          SCOPED_TRACE(target + ", group " + std::to_string(group) + ", length " + std::to_string(length));
          const ChosenRows decode(made->problem, {8});
          expect_rows(whole, everything(decode.problem), {8});
        }
      }
      set_target("best");
    }
  }
}

TEST(Bits, PagedAndInPlace) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t queries : {1, 20}) {
      Shape shape = shape_of(queries, 1100, 4, 2, 20, 12);
      shape.dtype = dtype;
      const TestProblem in_place(shape);
      const Everything expected = everything(in_place.problem);
      for (const Layout layout :
           {Layout::heads_outside, Layout::paged, Layout::pointer_per_row, Layout::strided, Layout::reversed}) {
        for (const std::int64_t page_rows : {1, 3, 128, 1000}) {
          if (layout != Layout::paged && page_rows != 3) continue;
          shape.layout = layout;
          shape.page_rows = page_rows;
          const TestProblem other(shape);
          EXPECT_TRUE(same(expected, everything(other.problem))) << static_cast<int>(layout) << ' ' << page_rows;
        }
      }
    }
  }
}

TEST(Bits, LayoutsOnEveryForm) {
  Shape shape = shape_of(11, 261, 2, 1, 8, 8);
  shape.dtype = DType::bf16;
  const TestProblem in_place(shape);
  const Everything expected = everything(in_place.problem);
  for (const Layout layout : {Layout::paged, Layout::strided, Layout::reversed}) {
    shape.layout = layout;
    const TestProblem other(shape);
    expect_everywhere(expected, [&] { return everything(other.problem); });
  }
}

// Case K90: where a page lies in memory is nobody's business.
TEST(Bits, K90_PagesInAnyOrderInMemory) {
  constexpr std::int64_t kPages = 9, kPageRows = 32, kRow = 2 * 8, kLength = kPages * kPageRows - 5;
  Shape shape = shape_of(6, kLength, 2, 2, 8, 8);
  TestProblem made(shape);
  const Everything expected = everything(made.problem);
  std::vector<int> order(kPages);
  std::iota(order.begin(), order.end(), 0);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    // One pool of pages that keys and values share; what nobody uses is NaN.
    std::vector<float> pool(2 * kPages * kPageRows * kRow, std::nanf(""));
    std::vector<const std::byte*> k_pages, v_pages;
    for (std::int64_t page = 0; page < kPages; ++page) {
      float* k = pool.data() + (2 * order[page] + 1) * kPageRows * kRow;
      float* v = pool.data() + 2 * order[kPages - 1 - page] * kPageRows * kRow;
      const std::int64_t rows = std::min(kPageRows, kLength - page * kPageRows);
      std::copy_n(made.keys[0].numbers.data() + page * kPageRows * kRow, rows * kRow, k);
      std::copy_n(made.values[0].numbers.data() + page * kPageRows * kRow, rows * kRow, v);
      k_pages.push_back(reinterpret_cast<const std::byte*>(k));
      v_pages.push_back(reinterpret_cast<const std::byte*>(v));
    }
    made.sequences[0].k.pages = k_pages.data();
    made.sequences[0].v.pages = v_pages.data();
    made.sequences[0].k.page_rows = made.sequences[0].v.page_rows = kPageRows;
    expect_everywhere(expected, [&] { return everything(made.problem); });
  }
}

// What hides a key is nobody's business either: the same keys hidden by a window, by blocked edges, by padding bytes,
// by a bias of -inf, by segments.
TEST(Bits, AllWaysToHideAKeyAreTheSame) {
  for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 40}, {0, 128}, {0, 130}, {3, 40}, {100, 300}, {128, 256}, {120, 299}, {250, 300}, {0, 300}}) {
    for (const std::int64_t queries : {1, 12}) {
      SCOPED_TRACE("keys " + std::to_string(begin) + " to " + std::to_string(end) + " hidden");
      Shape shape = shape_of(queries, 300, 2, 1, 12, 9);
      TestProblem padding(shape), edges(shape), bias(shape), segments(shape);
      std::vector<std::uint8_t> visible(300, 1);
      std::fill(visible.begin() + begin, visible.begin() + end, 0);
      padding.visible(0, visible);
      std::vector<EdgeEdit> blocked;
      for (std::int64_t r = 0; r < queries; ++r) {
        for (std::int32_t h = 0; h < 2; ++h) blocked.push_back({r, h, begin, end});
      }
      edges.edges(blocked);
      Tensor<float, 3> numbers({queries, 2, 300});
      for (std::int64_t i = 0; i < numbers.size(); ++i) {
        if (i % 300 >= begin && i % 300 < end) numbers.data()[i] = -kInfinity;
      }
      bias.bias(std::move(numbers));
      std::vector<std::int32_t> segment(300, 0);
      std::fill(segment.begin() + begin, segment.begin() + end, 7);
      segments.segments(0, segment);
      const Everything expected = everything(padding.problem);
      on_every_form([&](const std::string& form) {
        EXPECT_TRUE(same(expected, everything(padding.problem))) << form;
        EXPECT_TRUE(same(expected, everything(edges.problem))) << form;
        EXPECT_TRUE(same(expected, everything(bias.problem))) << form;
        EXPECT_TRUE(same(expected, everything(segments.problem))) << form;
        if (begin == 0 && end < 300) {  // a window that starts behind them
          TestProblem window(shape);
          window.problem.mask.window_left = 300 - end;
          for (QueryRow& row : window.query_rows) row.position = 299;
          EXPECT_TRUE(same(expected, everything(window.problem))) << form;
        }
        if (end == 300 && begin > 0) {  // a causal mask, and a right window, that stop before them; or a short sequence
          TestProblem causal(shape), right(shape), shorter(shape);
          causal.problem.mask.causal = true;
          right.problem.mask.window_right = 0;
          shorter.sequences[0].length = begin;
          for (QueryRow& row : causal.query_rows) row.position = begin - 1;
          for (QueryRow& row : right.query_rows) row.position = begin - 1;
          EXPECT_TRUE(same(expected, everything(causal.problem))) << form;
          EXPECT_TRUE(same(expected, everything(right.problem))) << form;
          EXPECT_TRUE(same_bits(expected.result, run(shorter.problem))) << form;
        }
      });
    }
  }
}

TEST(Bits, GroupedHeadsAndExpandedHeads) {
  for (const std::int64_t queries : {1, 15}) {
    Shape shape = shape_of(queries, 270, 6, 2, 8, 8);
    TestProblem grouped(shape);
    Shape expanded_shape = shape;
    expanded_shape.kv_heads = 6;
    TestProblem expanded(expanded_shape);
    const auto expand = [&](const StoredRows& from, StoredRows& to, std::int64_t channels) {
      for (std::int64_t j = 0; j < 270; ++j) {
        for (std::int64_t h = 0; h < 6; ++h) {
          for (std::int64_t c = 0; c < channels; ++c) to.set(j, h, c, from.numbers[(j * 2 + h / 3) * channels + c]);
        }
      }
    };
    expand(grouped.keys[0], expanded.keys[0], shape.channels);
    expand(grouped.values[0], expanded.values[0], shape.value_channels);
    expanded.problem.q = grouped.problem.q;
    const Everything expected = everything(grouped.problem);
    expect_everywhere(expected, [&] { return everything(grouped.problem); });
    expect_everywhere(expected, [&] { return everything(expanded.problem); });
    // And without copies: a head stride of 0 for the heads of a group is not needed, one head read by six is a group.
    TestProblem one(shape);
    one.problem.kv_heads = 1;
    TestProblem broadcast(expanded_shape);
    broadcast.problem.q = one.problem.q;
    broadcast.sequences[0].k = one.sequences[0].k;
    broadcast.sequences[0].v = one.sequences[0].v;
    broadcast.sequences[0].k.head_stride = broadcast.sequences[0].v.head_stride = 0;
    EXPECT_TRUE(same(everything(one.problem), everything(broadcast.problem)));
  }
}

// Law 2: what is asked for changes nothing of the rest.
TEST(Bits, WithAndWithoutReadersAndOtherOutputs) {
  for (const std::int64_t queries : {1, 30}) {
    const auto made = rich(queries, 500);
    const Everything expected = everything(made->problem);
    on_every_form([&](const std::string& form) {
      Tensor<float, 3> out(expected.result.out.shape());
      Tensor<RowSoftmax, 2> softmax(expected.result.softmax.shape());
      Tensor<float, 2> log_sum_exp(expected.result.log_sum_exp.shape());
      forward(made->problem, out.view());
      EXPECT_TRUE(same_bits(out, expected.result.out)) << form;
      forward(made->problem, out.view(), {}, log_sum_exp.view());
      EXPECT_TRUE(same_bits(out, expected.result.out)) << form;
      EXPECT_TRUE(same_bits(log_sum_exp, expected.result.log_sum_exp)) << form;
      forward(made->problem, out.view(), softmax.view());
      PatternReader a, b;
      Reader* both[] = {&a, &b};
      read(made->problem, std::as_const(softmax).view(), both);
      EXPECT_TRUE(same_bits(a.weight, expected.weight)) << form;
      EXPECT_TRUE(same_bits(b.weight, expected.weight)) << form;
      EXPECT_TRUE(same_bits(softmax, expected.result.softmax)) << form;
      forward(made->problem, out.view(), softmax.view());
      EXPECT_TRUE(same_bits(out, expected.result.out)) << form;
      EXPECT_TRUE(same_bits(softmax, expected.result.softmax)) << form;
    });
  }
}

TEST(Bits, SequencesTogetherAndAlone) {
  Shape shape;
  shape.queries = {9, 1, 0, 30, 2};
  shape.lengths = {200, 700, 50, 129, 0};
  shape.kv_heads = 2;
  shape.heads = 4;
  TestProblem together(shape);
  together.problem.mask.causal = true;
  // Their rows mixed, as a scheduler that takes one row of each in turn would have them.
  std::vector<std::int64_t> mixed = keys_between(0, together.problem.q.shape[0]);
  std::shuffle(mixed.begin(), mixed.end(), std::mt19937(3));
  const ChosenRows batch(together.problem, mixed);
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    const Everything all = everything(batch.problem);
    for (std::int32_t sequence = 0; sequence < 5; ++sequence) {
      std::vector<std::int64_t> mine;
      for (std::int64_t i = 0; i < std::ssize(mixed); ++i) {
        if (batch.problem.rows[i].sequence == sequence) mine.push_back(i);
      }
      if (mine.empty()) continue;
      const ChosenRows alone(batch.problem, mine);
      std::vector<QueryRow> rows(alone.problem.rows.begin(), alone.problem.rows.end());
      for (QueryRow& row : rows) row.sequence = 0;
      Problem only = alone.problem;
      only.rows = rows;
      only.sequences = batch.problem.sequences.subspan(sequence, 1);
      const Everything mine_only = everything(only);
      for (std::int64_t i = 0; i < std::ssize(mine); ++i) {
        for (std::int64_t h = 0; h < 4; ++h) {
          const RowSoftmax a = mine_only.result.softmax(i, h), b = all.result.softmax(mine[i], h);
          EXPECT_EQ(std::memcmp(&a, &b, sizeof(a)), 0);
          const float *out_a = &mine_only.result.out(i, h, 0), *out_b = &all.result.out(mine[i], h, 0);
          EXPECT_EQ(std::memcmp(out_a, out_b, 8 * sizeof(float)), 0);
          const std::int64_t length = shape.lengths[sequence];
          for (std::int64_t j = 0; j < length; ++j) ASSERT_EQ(mine_only.weight(i, h, j), all.weight(mine[i], h, j));
          for (std::int64_t j = length; j < 700; ++j) ASSERT_EQ(all.weight(mine[i], h, j), 0);
        }
      }
    }
  });
}

// Keys behind what a causal row sees may grow, change or be NaN: a cache that fills up changes no earlier row.
TEST(Bits, LaterKeysChangeNothing) {
  Shape shape = shape_of(20, 400, 2, 1, 8, 8);
  TestProblem made(shape);
  made.problem.mask.causal = true;
  for (QueryRow& row : made.query_rows) row.position -= 150;
  const Result expected = run(made.problem);
  for (std::int64_t j = 250; j < 400; ++j) {
    for (std::int64_t c = 0; c < 8; ++c) {
      made.keys[0].set(j, 0, c, j % 2 ? std::nanf("") : kInfinity);
      made.values[0].set(j, 0, c, j % 2 ? -kInfinity : std::nanf(""));
    }
  }
  on_every_form([&](const std::string& form) { EXPECT_TRUE(same_bits(expected, run(made.problem))) << form; });
  for (std::int64_t length : {250, 251, 256, 300}) {
    made.sequences[0].length = length;
    EXPECT_TRUE(same_bits(expected, run(made.problem))) << length;
  }
}

}  // namespace
}  // namespace regard::test
