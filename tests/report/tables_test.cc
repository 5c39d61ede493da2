#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "report/csv_writer.h"
#include "report/npz_writer.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

TEST(Csv, QuotesAndNumbers) {
  Output out = Output::to_memory();
  CsvWriter csv(out);
  csv.text("a \"b\", c\nd");
  csv.integer(-3);
  csv.number(0.1f);
  csv.number(std::numeric_limits<double>::infinity());
  csv.text("\xe4漢");
  csv.end_row();
  csv.integer(1);
  csv.end_row();
  out.finish();
  EXPECT_EQ(out.text(), "\"a \"\"b\"\", c\nd\",-3,0.100000001,,\"\\xE4漢\"\r\n1\r\n");
}

// The files inside, by name, from the bytes of the archive alone (central directory, stored entries).
std::string entry(const std::string& zip, const std::string& name) {
  const auto number = [&](std::size_t at, int bytes) {
    std::uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i)
      value = value << 8 | static_cast<unsigned char>(zip[at + static_cast<std::size_t>(i)]);
    return static_cast<std::size_t>(value);
  };
  for (std::size_t at = zip.find("PK\x01\x02"); at != zip.npos; at = zip.find("PK\x01\x02", at + 4)) {
    if (zip.substr(at + 46, number(at + 28, 2)) != name) continue;
    EXPECT_EQ(number(at + 10, 2), 0u) << "stored";
    const std::size_t local = number(at + 42, 4);
    return zip.substr(local + 30 + number(local + 26, 2) + number(local + 28, 2), number(at + 24, 4));
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

TEST(Npz, ArraysAreStoredWithTheirTypeAndShape) {
  testing::TempFolder folder;
  const std::vector<float> floats = {0, 1, 2, 3, 4, 5};
  const std::vector<std::int64_t> ints = {7, -1};
  const std::vector<std::int32_t> ids = {3};
  const std::vector<std::string> texts = {"a", "漢字", "\xe4"};
  {
    Output out = Output::to_file(folder / "a.npz");
    NpzWriter npz(out);
    npz.add("floats", std::span<const float>(floats), {2, 3});
    npz.add("ints", std::span<const std::int64_t>(ints), {2});
    npz.add("ids", std::span<const std::int32_t>(ids), {});
    npz.add("none", std::span<const float>(), {4, 0});
    npz.add_texts("texts", texts);
    npz.finish();
    out.finish();
  }
  const std::string zip = testing::read_file(folder / "a.npz");
  const auto check = [&](const std::string& name, const std::string& type, const std::string& shape, std::string data) {
    const std::string npy = entry(zip, name + ".npy");
    ASSERT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const std::size_t header = static_cast<unsigned char>(npy[8]) + 256u * static_cast<unsigned char>(npy[9]);
    EXPECT_EQ((10 + header) % 64, 0u);
    const std::string text = npy.substr(10, header);
    EXPECT_NE(text.find("'descr': '" + type + "'"), std::string::npos) << text;
    EXPECT_NE(text.find("'shape': " + shape), std::string::npos) << text;
    EXPECT_EQ(npy.substr(10 + header), data) << name;
  };
  const auto bytes = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  check("floats", "<f4", "(2,3,)", bytes(floats));
  check("ints", "<i8", "(2,)", bytes(ints));
  check("ids", "<i4", "()", bytes(ids));
  check("none", "<f4", "(4,0,)", "");
  const std::u32string wide = {U'a', 0, 0, 0, U'漢', U'字', 0, 0, U'\\', U'x', U'E', U'4'};
  check("texts", "<U4", "(3,)", bytes(wide));
}

TEST(Npz, OnlyToARegularFile) {
  Output out = Output::to_memory();
  testing::expect_error(ErrorCode::bad_input, {".npz"}, [&] { NpzWriter npz(out); });
}

}  // namespace
}  // namespace regard
