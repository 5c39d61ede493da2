#include "weights/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/errors.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

std::string sum_of(const std::string& text, std::size_t step) {
  Sha256 sum;
  for (std::size_t i = 0; i < text.size(); i += step) sum.update(text.data() + i, std::min(step, text.size() - i));
  return sum.hex();
}

// FIPS 180-4 examples.
TEST(Sha256, KnownSums) {
  EXPECT_EQ(sum_of("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 5),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum_of(std::string(1000000, 'a'), 4097),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfAFile) {
  const testing::TempFolder folder;
  testing::write_file(folder / "a", std::string(3000000, 'x'));
  std::int64_t last = 0;
  EXPECT_EQ(sha256_of_file(folder / "a", [&](std::int64_t done) { last = done; }),
            sum_of(std::string(3000000, 'x'), 1 << 16));
  EXPECT_EQ(last, 3000000);
  testing::expect_error(ErrorCode::not_found, {"none"}, [&] { sha256_of_file(folder / "none"); });
  testing::expect_error(ErrorCode::io, {"cannot be read"}, [&] { sha256_of_file(folder.path()); });
}

}  // namespace
}  // namespace regard
