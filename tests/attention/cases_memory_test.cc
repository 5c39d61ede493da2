// Faults that other attention kernels had with memory, each as a test on every form: B what lies behind the keys,
// H strides, shapes and nothing at all, I offsets beyond 32 bits.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

// Address space; only what is written takes memory.
class Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Mapping() { munmap(memory_, bytes_); }
  Mapping(const Mapping&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* memory_;
};

// Bytes right before a page, or right behind one, that nobody may touch.
class Guarded {
 public:
  Guarded(const void* bytes, std::size_t count, bool guard_behind)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        mapping_((count + page_ - 1) / page_ * page_ + 2 * page_) {
    std::byte* last = mapping_.data() + mapping_.size() - page_;
    if (mprotect(mapping_.data(), page_, PROT_NONE) != 0 || mprotect(last, page_, PROT_NONE) != 0)
      throw std::bad_alloc();
    data = guard_behind ? last - count : mapping_.data() + page_;
    if (count > 0) std::memcpy(data, bytes, count);
  }
  std::byte* data;

 private:
  std::size_t page_;
  Mapping mapping_;
};

// Nothing before, behind or beside what the problem names is read: a step outside ends the process.
TEST(Cases, B14_KeysBeyondTheLengthAreNeverTouched) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t length : {1, 5, 128, 130, 257}) {
      for (const std::int64_t queries : {1, 3, 30}) {
        for (const bool behind : {true, false}) {
          Shape shape = shape_of(queries, length, 4, 2);
          shape.dtype = dtype;
          TestProblem made(shape);
          Tensor<float, 3> numbers({queries, 4, length});
          for (std::int64_t i = 0; i < numbers.size(); ++i) numbers.data()[i] = 0.01f * static_cast<float>(i % 50);
          made.bias(std::move(numbers));
          made.visible(0, std::vector<std::uint8_t>(static_cast<std::size_t>(length), 1));
          made.problem.mask.causal = true;
          const Result expected = run(made.problem);

          const std::size_t size = dtype == DType::f32 ? 4 : 2;
          const auto rows = static_cast<std::size_t>(length);
          const Guarded k(made.sequences[0].k.pages[0], rows * 2 * 6 * size, behind);
          const Guarded v(made.sequences[0].v.pages[0], rows * 2 * 9 * size, behind);
          const Guarded q(made.q.data(), static_cast<std::size_t>(made.q.size()) * 4, behind);
          const Guarded bias(made.bias_numbers.data(), static_cast<std::size_t>(made.bias_numbers.size()) * 4, behind);
          const Guarded visible(made.visible_keys[0].data(), rows, behind);
          const Guarded out(expected.out.data(), static_cast<std::size_t>(expected.out.size()) * 4, behind);
          const std::byte *k_page = k.data, *v_page = v.data;
          made.sequences[0].k.pages = &k_page;
          made.sequences[0].v.pages = &v_page;
          made.sequences[0].visible = {reinterpret_cast<const std::uint8_t*>(visible.data), rows};
          made.problem.q.data = reinterpret_cast<const float*>(q.data);
          made.problem.mask.bias.data = reinterpret_cast<const float*>(bias.data);
          on_every_form([&](const std::string& form) {
            std::memset(out.data, 0xff, static_cast<std::size_t>(expected.out.size()) * 4);
            forward(made.problem, View<float, 3>(reinterpret_cast<float*>(out.data), expected.out.shape()));
            EXPECT_EQ(std::memcmp(out.data, expected.out.data(), static_cast<std::size_t>(expected.out.size()) * 4), 0)
                << form;
            read_pattern(made.problem, expected);
          });
        }
      }
    }
  }
}

// ---- H. Strides, shapes, nothing at all -----------------------------------------------------------------------------

TEST(Cases, H56_ChannelsThatAreNotNextToEachOther) {
  for (const std::int64_t queries : {1, 9}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      Shape shape = shape_of(queries, 140, 4, 2);
      shape.dtype = dtype;
      const TestProblem plain(shape);
      shape.layout = Layout::strided;
      const TestProblem strided(shape);
      const Result expected = run(plain.problem);
      on_every_form([&](const std::string& form) { EXPECT_TRUE(same_bits(expected, run(strided.problem))) << form; });
    }
  }
}

TEST(Cases, H57_KeysAndValuesHaveStridesOfTheirOwn) {
  const Layout layouts[] = {Layout::in_place,        Layout::heads_outside, Layout::paged,
                            Layout::pointer_per_row, Layout::strided,       Layout::reversed};
  for (const std::int64_t queries : {1, 9}) {
    const TestProblem plain(shape_of(queries, 140, 4, 2));
    const Result expected = run(plain.problem);
    for (const Layout of_keys : layouts) {
      for (const Layout of_values : layouts) {
        Shape shape = shape_of(queries, 140, 4, 2);
        shape.layout = of_keys;
        TestProblem mixed(shape);
        shape.layout = of_values;
        shape.page_rows = 9;
        mixed.values[0] = StoredRows(std::vector<float>(mixed.values[0].numbers), 140, 2, 9, shape);
        mixed.sequences[0].v = mixed.values[0].rows;
        on_every_form([&](const std::string& form) { EXPECT_TRUE(same_bits(expected, run(mixed.problem))) << form; });
      }
    }
  }
}

// A mapped file promises no alignment.
TEST(Cases, H58_RowsAtAnyAddress) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t queries : {1, 9}) {
      Shape shape = shape_of(queries, 140, 4, 2);
      shape.dtype = dtype;
      TestProblem made(shape);
      const Result expected = run(made.problem);
      const std::size_t size = dtype == DType::f32 ? 4 : 2;
      for (std::size_t shift : {1u, 2u, 3u}) {
        std::vector<std::byte> k(140 * 2 * 6 * size + shift), v(140 * 2 * 9 * size + shift);
        std::memcpy(k.data() + shift, made.keys[0].pages[0], k.size() - shift);
        std::memcpy(v.data() + shift, made.values[0].pages[0], v.size() - shift);
        const std::byte *k_page = k.data() + shift, *v_page = v.data() + shift;
        made.sequences[0].k.pages = &k_page;
        made.sequences[0].v.pages = &v_page;
        on_every_form([&](const std::string& form) { EXPECT_TRUE(same_bits(expected, run(made.problem))) << form; });
      }
    }
  }
}

TEST(Cases, H61_NothingAtAll) {
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    for (const Shape& shape : {shape_of(0, 9), shape_of(0, 0), shape_of(3, 0), shape_of(0, 9, 0), shape_of(4, 9, 0)}) {
      const TestProblem made(shape);
      const Result result = run(made.problem);
      for (float number : std::span(result.out.data(), result.out.size())) EXPECT_EQ(number, 0);
      const Tensor<float, 3> weight = read_pattern(made.problem, result);
      EXPECT_TRUE(same_bits(weight, pattern(made.problem, result)));
      EXPECT_EQ(weight.shape(), (std::array{shape.queries[0], shape.heads, shape.lengths[0]}));
    }
    Problem none;  // no sequences, no rows, no memory
    none.q = View<const float, 3>(nullptr, {0, 2, 4});
    none.value_channels = 4;
    forward(none, View<float, 3>(nullptr, {0, 2, 4}));
    EXPECT_EQ(weights(none, {}, {}, {}, 0, 0).size(), 0);
  });
  // No rows, heads or keys asked for.
  const TestProblem made(shape_of(3, 9));
  const Result result = run(made.problem);
  const std::vector<std::int64_t> rows = {1};
  const std::vector<std::int32_t> heads = {0};
  const auto softmax = std::as_const(result.softmax).view();
  EXPECT_EQ(weights(made.problem, softmax, {}, heads, 0, 9).size(), 0);
  EXPECT_EQ(weights(made.problem, softmax, rows, {}, 0, 9).size(), 0);
  EXPECT_EQ(weights(made.problem, softmax, rows, heads, 4, 4).size(), 0);
  read(made.problem, softmax, {});
}

// Empty sequences need no memory, and their rows see nothing.
TEST(Cases, H62_SequencesOfLengthZero) {
  TestProblem made(shape_of(4, 0));
  made.sequences[0].k = made.sequences[0].v = Rows();
  for (const Outcome& outcome : outcomes_of(made.problem)) {
    SCOPED_TRACE(outcome.form);
    for (std::int64_t r = 0; r < 4; ++r) expect_saw_nothing(outcome, r, 1);
  }
}

TEST(Cases, H63_EmptySequencesAmongOthers) {
  Shape shape = shape_of(1, 1);
  shape.queries = {2, 3, 0, 4, 0, 1};
  shape.lengths = {0, 5, 7, 0, 0, 130};
  const TestProblem made(shape);
  for (const Outcome& outcome : outcomes_of(made.problem)) {
    SCOPED_TRACE(outcome.form);
    for (std::int64_t r : {0, 1, 5, 6, 7, 8}) expect_saw_nothing(outcome, r, 0);
    for (std::int64_t r : {2, 3, 4}) EXPECT_EQ(keys_read(outcome, r, 1), keys_between(0, 5));
    EXPECT_EQ(keys_read(outcome, 9, 0), keys_between(0, 130));
  }
}

TEST(Cases, H65_HeadsThatAreNoMultipleOfAVector) {
  for (const std::int64_t channels : {1, 4, 5, 6, 9, 12, 15, 20, 41, 63}) {
    Shape shape = shape_of(5, 131, 4, 2);
    shape.channels = channels;
    shape.value_channels = 64 - channels;
    const TestProblem made(shape);
    expect_law_1(made.problem);
  }
}

TEST(Cases, H66_WideHeads) {
  for (const std::int64_t channels : {256, 257, 320, 511, 512}) {
    Shape shape = shape_of(2, 140);
    shape.channels = channels;
    shape.value_channels = channels;
    shape.spread = 0.1f;
    const TestProblem made(shape);
    expect_law_1(made.problem);
  }
}

TEST(Cases, H67_HeadsOf80Channels) {
  Shape shape = shape_of(9, 200, 4, 4);
  shape.channels = shape.value_channels = 80;
  const TestProblem made(shape);
  expect_law_1(made.problem);
}

TEST(Cases, H69_ABiasWithRoomBehindItsRows) {
  for (const std::int64_t queries : {1, 5}) {
    TestProblem dense(shape_of(queries, 130)), padded(shape_of(queries, 130));
    Tensor<float, 3> numbers({queries, 2, 130});
    std::vector<float> memory(static_cast<std::size_t>(queries) * 2 * 150 * 2, std::nanf(""));
    const View<float, 3> apart(memory.data(), {queries, 2, 130}, {600, 300, 2});
    for (std::int64_t r = 0; r < queries; ++r) {
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t j = 0; j < 130; ++j)
          apart(r, h, j) = numbers(r, h, j) = 0.1f * static_cast<float>(j % 13 - r);
      }
    }
    dense.bias(std::move(numbers));
    padded.problem.mask.bias = apart;
    on_every_form(
        [&](const std::string& form) { EXPECT_TRUE(same_bits(run(dense.problem), run(padded.problem))) << form; });
  }
}

// ---- I. Offsets beyond 32 bits --------------------------------------------------------------------------------------

constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 4096 + 64;  // bytes

// Rows, heads or channels of keys and values more than 2 GiB apart.
TEST(Cases, I70_StridesBeyond32Bits) {
  Shape shape = shape_of(2, 3, 4, 2);
  shape.channels = shape.value_channels = 3;
  TestProblem made(shape);
  const Result expected = run(made.problem);
  const Mapping memory(static_cast<std::size_t>(3 * kFar));
  struct Strides {
    std::int64_t row, head, inner;
  };
  for (const Strides& far : {Strides{kFar, 64, 4}, Strides{64, kFar, 4}, Strides{64, 32, kFar}}) {
    for (const bool backwards : {false, true}) {
      const std::int64_t last = backwards ? 2 * far.row + far.head + 2 * far.inner : 0, sign = backwards ? -1 : 1;
      const std::byte *k_page = memory.data() + last, *v_page = memory.data() + 2048 + last;
      const auto move = [&](Rows& rows, const StoredRows& from, const std::byte*& page) {
        rows.pages = &page;
        rows.page_rows = 3;
        rows.row_stride = sign * far.row;
        rows.head_stride = sign * far.head;
        rows.inner_stride = sign * far.inner;
        for (std::int64_t i = 0; i < 3 * 2 * 3; ++i) {
          const std::int64_t j = i / 6, g = i / 3 % 2, c = i % 3;
          std::memcpy(const_cast<std::byte*>(rows.row(j)) + g * rows.head_stride + c * rows.inner_stride,
                      &from.numbers[static_cast<std::size_t>(i)], sizeof(float));
        }
      };
      move(made.sequences[0].k, made.keys[0], k_page);
      move(made.sequences[0].v, made.values[0], v_page);
      on_every_form([&](const std::string& form) {
        const Result result = run(made.problem);
        EXPECT_TRUE(same_bits(expected, result)) << form;
        EXPECT_TRUE(same_bits(pattern(made.problem, expected), read_pattern(made.problem, result))) << form;
      });
    }
  }
}

// Queries, bias and outputs whose elements are more than 2^31 apart.
TEST(Cases, I71_OuterStridesOfQueriesAndOutputsBeyond32Bits) {
  constexpr std::int64_t kStep = kFar;  // elements
  TestProblem made(shape_of(3, 20));
  Tensor<float, 3> bias({3, 2, 20});
  for (std::int64_t i = 0; i < bias.size(); ++i) bias.data()[i] = 0.05f * static_cast<float>(i % 17);
  made.bias(std::move(bias));
  const Result expected = run(made.problem);
  const Mapping memory(static_cast<std::size_t>(3 * kStep * 4));
  auto* base = reinterpret_cast<float*>(memory.data());
  const View<float, 3> q(base, {3, 2, 6}, {kStep, 6, 1});
  const View<float, 3> far_bias(base + 64, {3, 2, 20}, {kStep, 20, 1});
  const View<float, 3> out(base + 256, {3, 2, 9}, {kStep, 9, 1});
  for (std::int64_t r = 0; r < 3; ++r) {
    std::copy_n(&made.q(r, 0, 0), 12, &q(r, 0, 0));
    std::copy_n(&made.bias_numbers(r, 0, 0), 40, &far_bias(r, 0, 0));
  }
  made.problem.q = q;
  made.problem.mask.bias = far_bias;
  on_every_form([&](const std::string& form) {
    forward(made.problem, out);
    for (std::int64_t r = 0; r < 3; ++r) {
      EXPECT_EQ(std::memcmp(&out(r, 0, 0), &expected.out(r, 0, 0), 18 * sizeof(float)), 0) << form;
    }
    EXPECT_TRUE(same_bits(pattern(made.problem, expected), read_pattern(made.problem, expected))) << form;
  });
}

// Pages more than 4 GiB apart, and rows in them whose offsets do not fit 32 bits.
TEST(Cases, I73_PagesBeyond32Bits) {
  constexpr std::int64_t kRow = std::int64_t{1} << 24, kPageRows = 150;  // a page: 2.4 GiB
  TestProblem made(shape_of(2, 200));
  const Result expected = run(made.problem);
  const Mapping memory(static_cast<std::size_t>(2 * kPageRows * kRow));
  const std::byte* k_pages[] = {memory.data() + kPageRows * kRow, memory.data()};
  const std::byte* v_pages[] = {memory.data() + 64, memory.data() + kPageRows * kRow + 64};
  const auto move = [&](Rows& rows, const StoredRows& from, std::int64_t channels, const std::byte* const* pages) {
    rows.row_stride = kRow;
    rows.page_rows = kPageRows;
    rows.pages = pages;
    for (std::int64_t j = 0; j < 200; ++j) {
      std::memcpy(const_cast<std::byte*>(rows.row(j)), from.numbers.data() + j * channels,
                  static_cast<std::size_t>(channels) * 4);
    }
  };
  move(made.sequences[0].k, made.keys[0], 6, k_pages);
  move(made.sequences[0].v, made.values[0], 9, v_pages);
  on_every_form([&](const std::string& form) { EXPECT_TRUE(same_bits(expected, run(made.problem))) << form; });
}

}  // namespace
}  // namespace regard::test
