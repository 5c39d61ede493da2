// A right file and a right index cut at every byte and with every byte changed: a clear error, or just what the changed
// file says, by another JSON reader; never a crash, never a read outside (the sanitizers watch).

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "support/safetensors_builder.h"
#include "support/temp_folder.h"
#include "weights/safetensors.h"

namespace regard {
namespace {

using testing::write_file;

std::string small_file() {
  testing::SafetensorsBuilder w;
  w.metadata("format", "pt");
  w.add_f32("a", {2, 1}, {1, 2});
  w.add("b", "F8_E4M3", {3}, "xyz");
  w.add("c", "F16", {0}, "");
  w.add("d", "I64", {}, "12345678");
  return w.bytes();
}

class SafetensorsDamage : public ::testing::Test {
 protected:
  // Reads, looks at every byte that the result points to, and compares with what the header says. False: refused.
  bool read(const std::string& bytes) {
    write_file(path, bytes);
    const auto error = testing::error_of([&] {
      const SafetensorsFiles files = read_safetensors(path);
      std::uint64_t length;
      std::memcpy(&length, bytes.data(), 8);
      nlohmann::json header = nlohmann::json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<long>(length));
      EXPECT_EQ(header.value("__metadata__", nlohmann::json::object()), nlohmann::json(files.metadata));
      header.erase("__metadata__");
      ASSERT_EQ(files.tensors.size(), header.size());
      std::size_t sum = 0;
      for (const auto& [name, tensor] : files.tensors) {
        const nlohmann::json& says = header.at(name);
        EXPECT_EQ(says.at("dtype"), tensor.format);
        EXPECT_EQ(says.at("shape"), nlohmann::json(tensor.shape));
        const std::size_t begin = says.at("data_offsets").at(0), end = says.at("data_offsets").at(1);
        ASSERT_EQ(end - begin, static_cast<std::size_t>(tensor.bytes));
        EXPECT_EQ(std::memcmp(bytes.data() + 8 + length + begin, tensor.data, end - begin), 0);
        sum += end - begin;
      }
      EXPECT_EQ(sum, bytes.size() - 8 - length);
    });
    if (error) {
      EXPECT_TRUE(error->code == ErrorCode::bad_input || error->code == ErrorCode::unsupported) << error->message;
      EXPECT_NE(error->message.find(path.string()), std::string::npos) << error->message;
    }
    return !error;
  }

  testing::TempFolder folder;
  std::filesystem::path path = folder / "x.safetensors";
};

TEST_F(SafetensorsDamage, AFileCutAtEveryByte) {
  const std::string bytes = small_file();
  EXPECT_TRUE(read(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(read(bytes.substr(0, length))) << length;
  EXPECT_FALSE(read(bytes + "x"));
}

TEST_F(SafetensorsDamage, AFileWithEveryByteChanged) {
  const std::string bytes = small_file();
  int accepted = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      SCOPED_TRACE(::testing::Message() << "byte " << at << ", changed by " << change);
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      accepted += read(damaged);
    }
  EXPECT_GE(accepted, 19 * 9);  // every change of the data, at least: the numbers may be any
}

TEST_F(SafetensorsDamage, AnIndexCutAndChangedAtEveryByte) {
  write_file(folder / "m-1.safetensors", small_file());
  const std::string text =
      R"({"metadata":{"total_size":19},"weight_map":{"a":"m-1.safetensors","b":"m-1.safetensors"}})";
  const std::filesystem::path index = folder / "model.safetensors.index.json";
  int accepted = 0;
  const auto read_index = [&](const std::string& bytes) {
    write_file(index, bytes);
    const auto error = testing::error_of([&] {
      EXPECT_EQ(read_safetensors(folder.path()).tensors.size(), 4u);
      ++accepted;
    });
    if (error) {
      EXPECT_NE(error->message.find(index.string()), std::string::npos) << error->message;
    }
  };
  for (std::size_t length = 0; length < text.size(); ++length) read_index(text.substr(0, length));
  EXPECT_EQ(accepted, 0);
  read_index(text);
  EXPECT_EQ(accepted, 1);
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      SCOPED_TRACE(::testing::Message() << "byte " << at << ", changed by " << change);
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      read_index(damaged);
    }
  EXPECT_GT(accepted, 10);  // keys and numbers under "metadata", and other tensors of the file
}

}  // namespace
}  // namespace regard
