#include "report/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/errors.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::read_file;
using testing::TempFolder;

int entries(const TempFolder& folder) {
  int n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++n;
  return n;
}

TEST(Output, AFileAppearsWhole) {
  TempFolder folder;
  Output out = Output::to_file(folder / "a.json");
  out.write("one ");
  out.flush();
  EXPECT_FALSE(std::filesystem::exists(folder / "a.json"));
  out.write(std::string(100000, 'x'));
  out.finish();
  EXPECT_EQ(read_file(folder / "a.json"), "one " + std::string(100000, 'x'));
  EXPECT_EQ(entries(folder), 1);
}

TEST(Output, WithoutFinishNothingIsLeftAndTheOldFileStays) {
  TempFolder folder;
  testing::write_file(folder / "a.json", "old");
  {
    Output out = Output::to_file(folder / "a.json");
    out.write("new");
    out.flush();
  }
  EXPECT_EQ(read_file(folder / "a.json"), "old");
  EXPECT_EQ(entries(folder), 1);
}

TEST(Output, RightsAreThoseOfTheOldFileOrOfANewOne) {
  TempFolder folder;
  testing::write_file(folder / "old", "x");
  chmod((folder / "old").c_str(), 0640);
  const mode_t mask = umask(027);
  for (const char* name : {"old", "new"}) Output::to_file(folder / name).finish();
  umask(mask);
  struct stat about {};
  stat((folder / "old").c_str(), &about);
  EXPECT_EQ(about.st_mode & 07777, 0640u);
  stat((folder / "new").c_str(), &about);
  EXPECT_EQ(about.st_mode & 07777, 0640u);
}

TEST(Output, ALinkStaysALink) {
  TempFolder folder;
  testing::write_file(folder / "real", "old");
  std::filesystem::create_symlink(folder / "real", folder / "link");
  Output out = Output::to_file(folder / "link");
  out.write("new");
  out.finish();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "real"), "new");
}

TEST(Output, AFullDiskIsToldOf) {
  TempFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "full.json");
  const auto write = [&] {
    Output out = Output::to_file(folder / "full.json");
    EXPECT_TRUE(out.temporary().empty());
    out.write("x");
    out.finish();
  };
  expect_error(ErrorCode::io, {"full.json", "No space left"}, write);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "full.json"));
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));

  const int full = open("/dev/full", O_WRONLY);
  expect_error(ErrorCode::io, {"standard output", "No space left"}, [&] {
    Output out = Output::to_descriptor(full, "standard output");
    out.write("x");
    out.finish();
  });
  close(full);
}

TEST(Output, PlacesThatCannotBeWritten) {
  TempFolder folder;
  expect_error(ErrorCode::io, {"missing"}, [&] { Output::to_file(folder / "missing" / "a.json"); });
  expect_error(ErrorCode::io, {"directory"}, [&] { Output::to_file(folder.path()); });
  const int closed = open("/dev/null", O_WRONLY);
  close(closed);
  expect_error(ErrorCode::io, {"standard output"}, [&] {
    Output out = Output::to_descriptor(closed, "standard output");
    out.write("x");
    out.finish();
  });
}

}  // namespace
}  // namespace regard
