// A right file cut at every byte, and with every byte of its header changed: a clear error, or values that the changed
// file does say; never a crash, never a read outside (the sanitizers watch).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <set>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "support/tiny_llama.h"
#include "weights/checkpoint.h"
#include "weights/gguf.h"

namespace regard {
namespace {

using testing::GgufWriter;

GgufWriter tiny() {
  testing::TinyLlama t;
  t.layers = 1;
  t.kv_heads = 1;
  t.head_dim = 4;
  t.width = t.hidden = 32;
  t.type = DType::q8_0;
  t.heads = 8;
  t.embedding_type = DType::q4_1;
  t.rope_divisors = true;
  GgufWriter w = testing::tiny_llama(t);
  w.f32s("tokenizer.ggml.scores", std::vector<float>(260, 0.0f));
  w.boolean("llama.attention.causal", true);
  w.string("tokenizer.chat_template", "{{ x }}");
  return w;
}

class GgufDamage : public ::testing::Test {
 protected:
  GgufDamage() : writer(tiny()), bytes(writer.bytes()), header(writer.header().size()), path(folder / "x.gguf") {
    testing::write_file(path, bytes);
  }

  // Loads and looks at every byte that the result points to. What was thrown, if anything.
  std::optional<Error> load() {
    std::optional<Error> error = testing::error_of([&] {
      const Checkpoint checkpoint = load_checkpoint(path);
      unsigned sum = 0;
      for (const auto& [name, m] : checkpoint.matrices)
        for (std::int64_t row = 0; row < m.rows; ++row)
          for (std::int64_t i = 0; i < row_bytes(m.dtype, m.cols); ++i) sum += static_cast<unsigned>(m.row(row)[i]);
      volatile unsigned used = sum;
      static_cast<void>(used);
      EXPECT_EQ(checkpoint.config.layers, 1);
      EXPECT_EQ(checkpoint.config.width, 32);
      EXPECT_EQ(checkpoint.config.vocabulary, 260);
      EXPECT_EQ(checkpoint.tokenizer.pieces.size(), 260u);
    });
    if (error) {
      EXPECT_NE(error->message.find("x.gguf"), std::string::npos) << error->message;
      EXPECT_TRUE(error->code == ErrorCode::bad_input || error->code == ErrorCode::unsupported) << error->message;
      EXPECT_EQ(error->message.find_first_not_of(printable()), std::string::npos) << error->message;
    }
    return error;
  }
  static std::string printable() {
    std::string all;
    for (char c = 0x20; c < 0x7f; ++c) all += c;
    return all;
  }

  const testing::TempFolder folder;
  const GgufWriter writer;
  const std::string bytes;
  const std::size_t header;
  const std::filesystem::path path;
};

TEST_F(GgufDamage, CutAtEveryByte) {
  ASSERT_FALSE(load());
  const std::size_t needed = bytes.size() - 32 + writer.tensors.back().data.size() % 32;  // but for the last padding
  ASSERT_GT(writer.tensors.back().data.size() % 32, 0u);
  for (std::size_t size = bytes.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const std::optional<Error> error = load();
    ASSERT_EQ(error.has_value(), size < needed) << size;
  }
}

TEST_F(GgufDamage, EveryHeaderByteChanged) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::size_t refused = 0, tried = 0;
  std::set<std::string> messages;
  for (std::size_t at = 0; at < header; ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      const char changed = static_cast<char>(bytes[at] ^ change);
      ASSERT_EQ(pwrite(file, &changed, 1, static_cast<off_t>(at)), 1);
      const std::optional<Error> error = load();
      ++tried;
      if (error) {
        ++refused;
        messages.insert(error->message);
      } else if (at < 24) {
        // magic, version and counts: only version 2 for 3 is as good
        EXPECT_TRUE(at == 4 && changed == 2) << at;
      }
    }
    ASSERT_EQ(pwrite(file, &bytes[at], 1, static_cast<off_t>(at)), 1);
  }
  close(file);
  ASSERT_FALSE(load()) << "the file is as it was";
  // Text of a piece or a name can be anything; lengths, types, counts, keys and offsets cannot.
  EXPECT_GT(refused, tried / 2);
  EXPECT_GT(messages.size(), 100u);
}

// No change of a byte in the list of tensors goes unnoticed, but one that gives the last tensor another type or extent
// that still fits: there is nothing after it that would no longer fit.
TEST_F(GgufDamage, ChangesInTheListOfTensorsAreNoticed) {
  const std::string list = GgufWriter::encoded(writer.tensors.front().name);
  const std::size_t begin = bytes.find(list), end = bytes.find(GgufWriter::encoded(writer.tensors.back().name));
  ASSERT_NE(begin, std::string::npos);
  ASSERT_LT(begin, end);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  for (std::size_t at = begin; at < end; ++at) {
    const char changed = static_cast<char>(bytes[at] ^ 0x01);
    ASSERT_EQ(pwrite(file, &changed, 1, static_cast<off_t>(at)), 1);
    EXPECT_TRUE(load()) << at - begin << " bytes into the list";
    ASSERT_EQ(pwrite(file, &bytes[at], 1, static_cast<off_t>(at)), 1);
  }
  close(file);
}

}  // namespace
}  // namespace regard
