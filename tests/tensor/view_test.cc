#include "tensor/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace regard {
namespace {

std::vector<int> ascending(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(View, RowMajorWithoutGaps) {
  std::vector<int> m = ascending(24);
  const View<int, 3> v(m.data(), {2, 3, 4});
  EXPECT_EQ(v.stride, (std::array<std::int64_t, 3>{12, 4, 1}));
  EXPECT_EQ(v.size(), 24);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) EXPECT_EQ(v(i, j, k), (i * 3 + j) * 4 + k);
    }
  }
  v(1, 2, 3) = -5;
  EXPECT_EQ(m[23], -5);
}

TEST(View, StridesMayTurnRepeatAndReverse) {
  std::vector<int> m = ascending(6);
  const View<int, 2> turned(m.data(), {3, 2}, {1, 3});  // of a [2, 3]
  EXPECT_EQ(turned(2, 1), 5);
  EXPECT_EQ(turned(0, 1), 3);
  const View<int, 2> repeated(m.data(), {4, 6}, {0, 1});
  EXPECT_EQ(repeated(3, 5), 5);
  EXPECT_EQ(repeated.size(), 24);
  const View<int, 1> reversed(&m[5], {6}, {-1});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(reversed(i), 5 - i);
}

TEST(View, APartAndASlice) {
  std::vector<int> m = ascending(24);
  const View<int, 3> v(m.data(), {2, 3, 4});
  const View<int, 2> part = v[1];
  EXPECT_EQ(part.shape, (std::array<std::int64_t, 2>{3, 4}));
  EXPECT_EQ(part(2, 1), v(1, 2, 1));
  const View<int, 2> rows = part.slice(1, 3);
  EXPECT_EQ(rows.shape, (std::array<std::int64_t, 2>{2, 4}));
  EXPECT_EQ(&rows(0, 0), &part(1, 0));
  EXPECT_EQ(part.slice(3, 3).size(), 0);
  const View<int, 3> turned(m.data(), {4, 3, 2}, {1, 4, 12});
  EXPECT_EQ(turned[3].slice(1, 2)(0, 1), v(1, 1, 3));
}

TEST(View, EmptyAndDefault) {
  const View<int, 2> none;
  EXPECT_EQ(none.data, nullptr);
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ((View<int, 3>(nullptr, {5, 0, 7}).size()), 0);
}

TEST(View, AViewToWriteIsAViewToReadAndNotTheOtherWay) {
  std::vector<int> m = ascending(4);
  const View<int, 2> writable(m.data(), {2, 2});
  const View<const int, 2> readable = writable;
  m[3] = 8;
  EXPECT_EQ(readable(1, 1), 8);
  static_assert(!std::is_convertible_v<View<const int, 2>, View<int, 2>>);
  static_assert(!std::is_convertible_v<View<float, 2>, View<const int, 2>>);
}

}  // namespace
}  // namespace regard
