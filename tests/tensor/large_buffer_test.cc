#include "tensor/large_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <new>
#include <vector>

namespace regard {
namespace {

// Below, at and above the size of a large page, to the last byte.
TEST(LargeBuffer, IsZeroAlignedAndWritableToItsLastByte) {
  constexpr std::int64_t kLargePage = std::int64_t{2} << 20;
  for (std::int64_t size : {std::int64_t{1}, std::int64_t{4097}, kLargePage - 1, kLargePage, 3 * kLargePage + 5}) {
    LargeBuffer buffer(size);
    ASSERT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (size < kLargePage ? 64 : kLargePage), 0u);
    for (std::int64_t i = 0; i < size; i += 511) ASSERT_EQ(buffer.data()[i], std::byte{0});
    ASSERT_EQ(buffer.data()[size - 1], std::byte{0});
    std::memset(buffer.data(), 0x5a, static_cast<std::size_t>(size));
    EXPECT_EQ(buffer.data()[size - 1], std::byte{0x5a});
  }
}

TEST(LargeBuffer, MovesAndStaysWhereItIs) {
  std::vector<LargeBuffer> all;
  std::vector<const std::byte*> places;
  for (int i = 0; i < 20; ++i) {
    all.emplace_back(100'000);
    all.back().data()[99'999] = std::byte(i);
    places.push_back(all.back().data());
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(all[i].data(), places[i]);
    EXPECT_EQ(all[i].data()[99'999], std::byte(i));
  }
}

TEST(LargeBuffer, OfNothingAndOfTooMuch) {
  EXPECT_EQ(LargeBuffer().data(), nullptr);
  EXPECT_EQ(LargeBuffer(0).size(), 0);
  EXPECT_THROW(LargeBuffer(-1), std::bad_alloc);
  EXPECT_THROW(LargeBuffer(std::numeric_limits<std::int64_t>::max()), std::bad_alloc);
  EXPECT_THROW(LargeBuffer(std::int64_t{1} << 60), std::bad_alloc);
}

}  // namespace
}  // namespace regard
