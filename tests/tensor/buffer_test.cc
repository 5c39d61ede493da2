#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace regard {
namespace {

TEST(Buffer, IsAlignedAndZeroWhateverTheSize) {
  for (std::int64_t n : {1, 2, 3, 15, 16, 17, 1000, 100003}) {
    {
      Buffer<float> dirty(n);  // so that what comes next does not get fresh pages by luck
      std::fill(dirty.begin(), dirty.end(), 1.0f);
    }
    const Buffer<float> b(n);
    EXPECT_EQ(b.size(), n);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % kAlignment, 0u);
    EXPECT_TRUE(std::all_of(b.begin(), b.end(), [](float v) { return v == 0; }));
    EXPECT_EQ(b.end() - b.begin(), n);
  }
}

TEST(Buffer, LargeOnesMayLieInLargePages) {
  constexpr auto kLarge = static_cast<std::int64_t>(kLargeBytes);
  for (std::int64_t size : {kLarge - 1, kLarge, 2 * kLarge + 4097}) {
    Buffer<std::byte> buffer(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (size < kLarge ? 64 : 2 << 20), 0u);
    EXPECT_TRUE(std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == std::byte{0}; }));
    std::fill(buffer.begin(), buffer.end(), std::byte{1});
  }
}

TEST(Buffer, EmptyOnesHoldNothing) {
  const Buffer<double> none, zero(0);
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(zero.size(), 0);
  EXPECT_EQ(zero.begin(), zero.end());
}

TEST(Buffer, MovesWithoutCopying) {
  Buffer<int> a(5);
  a[4] = 7;
  const int* where = a.data();
  Buffer<int> b = std::move(a);
  EXPECT_EQ(b.data(), where);
  EXPECT_EQ(b[4], 7);
  EXPECT_EQ(a.size(), 0) << "what was moved from holds nothing and says so";
  EXPECT_EQ(a.begin(), a.end());
  Buffer<int> c(3);
  c = std::move(b);
  EXPECT_EQ(c.data(), where);
  EXPECT_EQ(c.size(), 5);
  EXPECT_EQ(b.size(), 0);
}

TEST(Buffer, RefusesSizesThatNoMemoryHas) {
  EXPECT_THROW(Buffer<float>(-1), std::bad_alloc);
  EXPECT_THROW(Buffer<float>(std::int64_t{1} << 62), std::bad_alloc) << "2^64 bytes would wrap to none";
}

TEST(Tensor, IsRowMajorAndItsViewsShareItsMemory) {
  Tensor<float, 3> t({2, 3, 4});
  EXPECT_EQ(t.size(), 24);
  EXPECT_EQ(t.shape(), (std::array<std::int64_t, 3>{2, 3, 4}));
  t(1, 2, 3) = 5;
  EXPECT_EQ(t.data()[23], 5);
  t.view()(0, 1, 0) = 6;
  const Tensor<float, 3>& constant = t;
  EXPECT_EQ(constant(0, 1, 0), 6);
  EXPECT_EQ(constant.view()(1, 2, 3), 5);
  static_assert(std::is_same_v<decltype(constant.view()), View<const float, 3>>);
}

TEST(Tensor, MayBeEmpty) {
  EXPECT_EQ((Tensor<float, 2>({0, 8}).size()), 0);
  EXPECT_EQ((Tensor<float, 2>().size()), 0);
}

}  // namespace
}  // namespace regard
