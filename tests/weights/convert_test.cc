// A model as one safetensors file: the same values, the public writer's bytes, and what is quantised widened or
// refused.

#include "weights/convert.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/dequantize.h"
#include "support/errors.h"
#include "support/gguf_writer.h"
#include "support/safetensors_builder.h"
#include "support/temp_folder.h"
#include "weights/safetensors.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::GgufWriter;
using testing::read_file;
using testing::SafetensorsBuilder;
using testing::TempFolder;
using testing::write_file;

std::string numbers(std::int64_t count, unsigned step = 37) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes += static_cast<char>(i * step % 249);
  return bytes;
}

class Convert : public ::testing::Test {
 protected:
  std::string bytes_from(const std::filesystem::path& path, bool widen = false) {
    Conversion conversion = convert_from(path, widen);
    const SafetensorsWriter writer(std::move(conversion.tensors), conversion.metadata);
    std::string out;
    writer.write([&](const std::byte* data, std::int64_t n) { out.append(reinterpret_cast<const char*>(data), n); },
                 "writing", nullptr);
    EXPECT_EQ(static_cast<std::int64_t>(out.size()), writer.bytes());
    conversion.check_intact();
    return out;
  }
  SafetensorsFiles read_from(const std::filesystem::path& path, bool widen) {
    write_file(folder / "out.safetensors", bytes_from(path, widen));
    return read_safetensors(folder / "out.safetensors");
  }
  static std::vector<float> floats(const StoredTensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.bytes) / 4);
    std::memcpy(values.data(), tensor.data, values.size() * 4);
    return values;
  }

  TempFolder folder;
};

TEST_F(Convert, ThePublicWritersBytes) {
  const std::string path = REGARD_TEST_DATA "/safetensors/public.safetensors";
  EXPECT_EQ(bytes_from(path), read_file(path));
  EXPECT_EQ(bytes_from(path, true), read_file(path));  // nothing there is quantised
}

TEST_F(Convert, ManyFilesBecomeOne) {
  SafetensorsBuilder all, first, second;
  for (SafetensorsBuilder* b : {&all, &first}) b->add("a", "BF16", {2, 3}, numbers(12));
  for (SafetensorsBuilder* b : {&all, &second}) b->add("b", "BF16", {5}, numbers(10, 3));
  write_file(folder / "m-1.safetensors", first.bytes());
  write_file(folder / "m-2.safetensors", second.bytes());
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  write_file(folder / "all.safetensors", all.bytes());
  EXPECT_EQ(bytes_from(folder.path()), bytes_from(folder / "all.safetensors"));
  const SafetensorsFiles files = read_from(folder.path(), false);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(files.tensors.at("b").data), 10), numbers(10, 3));
}

TEST_F(Convert, GgufKeepsNamesAndValues) {
  GgufWriter w;
  w.string("general.architecture", "toy");
  w.u32("toy.block_count", 1);
  w.tensor("half", {3, 2}, DType::f16, numbers(12));
  w.tensor("blk.0.x", {4}, DType::bf16, numbers(8));
  w.tensor("one", {}, DType::f64, numbers(8));
  w.tensors.push_back({"ints", {2}, 26, numbers(8), {}, {}, {}});
  w.write(folder / "x.gguf");
  const SafetensorsFiles files = read_from(folder / "x.gguf", false);
  EXPECT_EQ(files.metadata, (std::map<std::string, std::string>{{"general.architecture", "toy"}}));
  ASSERT_EQ(files.tensors.size(), 4u);
  const StoredTensor& half = files.tensors.at("half");
  EXPECT_EQ(half.format, "F16");
  EXPECT_EQ(half.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(half.data), 12), numbers(12));
  EXPECT_EQ(files.tensors.at("ints").format, "I32");
  EXPECT_EQ(files.tensors.at("one").shape, std::vector<std::int64_t>{});
  EXPECT_EQ(files.tensors.at("blk.0.x").format, "BF16");
}

TEST_F(Convert, GgufBlocksAreWidenedOnRequest) {
  GgufWriter w;
  w.string("general.architecture", "toy");
  const std::string q8 = numbers(6 * 2 * 34), mx = numbers(2 * 17, 5);
  w.tensor("q8", {64, 3, 2}, DType::q8_0, q8);
  w.tensors.push_back({"mx", {32, 2}, 39, mx, {}, {}, {}});
  w.tensor("empty", {32, 0}, DType::q4_1, "");
  w.tensor("plain", {2}, DType::bf16, numbers(4));
  w.write(folder / "x.gguf");
  expect_error(ErrorCode::unsupported, {"x.gguf", "Q4_1", "'empty'"}, [&] { convert_from(folder / "x.gguf", false); });
  EXPECT_EQ(convert_from(folder / "x.gguf", true).widened, 3);

  const SafetensorsFiles files = read_from(folder / "x.gguf", true);
  EXPECT_EQ(files.tensors.at("plain").format, "BF16");
  EXPECT_EQ(files.tensors.at("empty").shape, (std::vector<std::int64_t>{0, 32}));
  EXPECT_EQ(files.tensors.at("q8").shape, (std::vector<std::int64_t>{2, 3, 64}));
  std::vector<float> expected(6 * 64);
  const Matrix m{DType::q8_0, 6, 64, reinterpret_cast<const std::byte*>(q8.data()), 68};
  for (std::int64_t row = 0; row < 6; ++row) dequantize(m, row, 0, 64, expected.data() + row * 64);
  EXPECT_EQ(floats(files.tensors.at("q8")), expected);
  // The second block of mx: 2^(scale - 127) x E2M1 of the low half of its first byte.
  static constexpr float kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
  const auto scale = static_cast<unsigned char>(mx[17]), first = static_cast<unsigned char>(mx[18]);
  EXPECT_EQ(floats(files.tensors.at("mx"))[32], std::ldexp(kValues[first & 15], scale - 127));

  w.tensors[0].type = 16;  // IQ2_XXS, which regard cannot read
  w.tensors[0] = {"iq", {256}, 16, numbers(66), {}, {}, {}};
  w.write(folder / "x.gguf");
  expect_error(ErrorCode::unsupported, {"'iq'", "IQ2_XXS", "not supported"},
               [&] { convert_from(folder / "x.gguf", true); });
}

TEST_F(Convert, Float8WithItsScales) {
  SafetensorsBuilder b;
  b.add("m.weight", "F8_E4M3", {2, 2}, "\x38\x40\x44\xb8");  // 1 2 3 -1
  b.add_f32("m.weight_scale_inv", {1, 2}, {10, 0.5});
  b.add("n.weight", "F8_E4M3", {3}, "\x38\x38\x40");
  b.add("n.bias", "BF16", {1}, "12");
  write_file(folder / "model.safetensors", b.bytes());
  write_file(folder / "config.json", R"({"quantization_config":{"weight_block_size":[128,1]}})");
  expect_error(ErrorCode::unsupported, {"'m.weight'", "F8_E4M3"}, [&] { convert_from(folder.path(), false); });
  const SafetensorsFiles files = read_from(folder.path(), true);
  ASSERT_EQ(files.tensors.size(), 3u);
  EXPECT_EQ(floats(files.tensors.at("m.weight")), (std::vector<float>{10, 1, 30, -0.5}));
  EXPECT_EQ(floats(files.tensors.at("n.weight")), (std::vector<float>{1, 1, 2}));
  EXPECT_EQ(files.tensors.at("n.weight").shape, std::vector<std::int64_t>{3});
  EXPECT_EQ(files.tensors.at("n.bias").format, "BF16");
  write_file(folder / "config.json", R"({"quantization_config":{"weight_block_size":[128]}})");
  expect_error(ErrorCode::bad_input, {"weight_block_size"}, [&] { convert_from(folder.path(), true); });
  SafetensorsBuilder four;
  four.add("x", "F4", {2}, "1");
  std::filesystem::create_directory(folder / "four");
  write_file(folder / "four/x.safetensors", four.bytes());
  expect_error(ErrorCode::unsupported, {"'x'", "F4"}, [&] { convert_from(folder / "four/x.safetensors", true); });
}

// transformers' own values, laid out as the layer has them: [experts, in, out] (tests/data/float8/make.py).
TEST_F(Convert, Mxfp4AsTheUnquantisedLayer) {
  const std::string data = read_file(REGARD_TEST_DATA "/float8/mxfp4.bin");
  SafetensorsBuilder b;
  b.add("experts.up_blocks", "U8", {2, 3, 2, 16}, data.substr(0, 192));
  b.add("experts.up_scales", "U8", {2, 3, 2}, data.substr(192, 12));
  b.add("other_blocks", "U8", {2}, "12");
  write_file(folder / "x.safetensors", b.bytes());
  expect_error(ErrorCode::unsupported, {"'experts.up_blocks'"}, [&] { convert_from(folder / "x.safetensors", false); });
  const SafetensorsFiles files = read_from(folder / "x.safetensors", true);
  ASSERT_EQ(files.tensors.size(), 2u);
  EXPECT_EQ(files.tensors.at("other_blocks").format, "U8");
  const StoredTensor& up = files.tensors.at("experts.up");
  ASSERT_EQ(up.shape, (std::vector<std::int64_t>{2, 64, 3}));
  const std::vector<float> got = floats(up);
  for (int e = 0; e < 2; ++e)
    for (int row = 0; row < 3; ++row)
      for (int col = 0; col < 64; ++col) {
        float expected;
        std::memcpy(&expected, data.data() + 204 + ((e * 3 + row) * 64 + col) * 4, 4);
        ASSERT_EQ(got[static_cast<std::size_t>((e * 64 + col) * 3 + row)], expected);
      }
}

}  // namespace
}  // namespace regard
