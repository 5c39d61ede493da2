#include "weights/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "support/errors.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::TempFolder;
using testing::write_file;

std::string three_pages() {
  std::string bytes(3 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(1 + i % 251);
  return bytes;
}

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const TempFolder folder;
  write_file(folder / "a", three_pages());
  MappedFile file(folder / "a");
  ASSERT_EQ(file.size(), static_cast<std::int64_t>(three_pages().size()));
  EXPECT_EQ(std::memcmp(file.data(), three_pages().data(), three_pages().size()), 0);
  EXPECT_NO_THROW(file.check_intact());

  MappedFile moved = std::move(file);
  EXPECT_EQ(static_cast<char>(moved.data()[7]), three_pages()[7]);
  write_file(folder / "b", "other");
  moved = MappedFile(folder / "b");
  EXPECT_EQ(moved.size(), 5);
  EXPECT_EQ(moved.path(), folder / "b");
  EXPECT_NO_THROW(moved.check_intact());
}

TEST(MappedFile, SaysWhatCannotBeMapped) {
  const TempFolder folder;
  write_file(folder / "empty", "");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::not_found, {"none.gguf", "no such file"}, [&] { MappedFile(folder / "none.gguf"); });
  expect_error(ErrorCode::not_found, {"no such file"}, [&] { MappedFile(folder / "empty" / "below"); });
  expect_error(ErrorCode::bad_input, {"a folder"}, [&] { MappedFile(folder.path()); });
  expect_error(ErrorCode::bad_input, {"empty"}, [&] { MappedFile(folder / "empty"); });
  expect_error(ErrorCode::bad_input, {"pipe"}, [&] { MappedFile(folder / "pipe"); });
}

// A truncation while the pages are mapped would be a fatal SIGBUS; here it is zeros and then an error.
TEST(MappedFile, SurvivesATruncationAndReportsIt) {
  const TempFolder folder;
  for (int round = 0; round < 2; ++round) {  // the second round uses a guard again
    write_file(folder / "a", three_pages());
    struct stat before;
    ASSERT_EQ(stat((folder / "a").c_str(), &before), 0);
    const MappedFile file(folder / "a");
    const std::int64_t page = file.size() / 3;
    ASSERT_EQ(truncate((folder / "a").c_str(), page), 0);
    const auto read = [&](std::int64_t at) {
      return static_cast<int>(static_cast<const volatile std::byte&>(file.data()[at]));
    };
    EXPECT_EQ(read(page + 5), 0);
    EXPECT_EQ(read(3 * page - 1), 0);
    EXPECT_EQ(read(page - 1), static_cast<unsigned char>(three_pages()[static_cast<std::size_t>(page) - 1]));
    expect_error(ErrorCode::io, {(folder / "a").string(), "cut short"}, [&] { file.check_intact(); });
    // Put back with the same size and time: the reader has still seen zeros.
    ASSERT_EQ(truncate((folder / "a").c_str(), 3 * page), 0);
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder / "a").c_str(), times, 0), 0);
    expect_error(ErrorCode::io, {"while it was in use"}, [&] { file.check_intact(); });
  }
}

TEST(MappedFile, ReportsAFileThatWasWrittenTo) {
  const TempFolder folder;
  write_file(folder / "a", three_pages());
  const MappedFile file(folder / "a");
  const int other = open((folder / "a").c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(other, "x", 1, 0), 1);
  close(other);
  const timespec later[2] = {{0, UTIME_OMIT}, {2'000'000'000, 0}};  // clocks of file systems are coarse
  ASSERT_EQ(utimensat(AT_FDCWD, (folder / "a").c_str(), later, 0), 0);
  expect_error(ErrorCode::io, {"changed"}, [&] { file.check_intact(); });
}

// Another file put in its place (as a download does) is no change of ours.
TEST(MappedFile, KeepsTheOldFileWhenAnotherTakesItsName) {
  const TempFolder folder;
  write_file(folder / "a", three_pages());
  const MappedFile file(folder / "a");
  write_file(folder / "b", "new");
  std::filesystem::rename(folder / "b", folder / "a");
  EXPECT_EQ(std::memcmp(file.data(), three_pages().data(), three_pages().size()), 0);
  EXPECT_NO_THROW(file.check_intact());
}

// A fault in memory that is not ours.
void fault_elsewhere(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDWR);
  void* mapped = mmap(nullptr, three_pages().size(), PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED || ftruncate(file, 0) != 0) _exit(0);
  static_cast<void>(*static_cast<volatile char*>(mapped));
  _exit(0);
}

class SignalDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // runs alone: no mapping before it in the process
    write_file(folder / "ours", three_pages());
    write_file(folder / "theirs", three_pages());
  }
  const TempFolder folder;
};

TEST_F(SignalDeathTest, AFaultElsewhereStaysFatal) {
  // By the signal; or by the report of the sanitizer, whose handler was there before ours.
  const auto fatal = [](int status) {
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0;
  };
  EXPECT_EXIT(
      {
        const MappedFile ours(folder / "ours");
        fault_elsewhere(folder / "theirs");
      },
      fatal, "");
}

TEST_F(SignalDeathTest, AFaultElsewhereGoesToTheHandlerThatWasThere) {
  EXPECT_EXIT(
      {
        signal(SIGBUS, [](int) { _exit(77); });
        const MappedFile ours(folder / "ours");
        fault_elsewhere(folder / "theirs");
      },
      ::testing::ExitedWithCode(77), "");
}

}  // namespace
}  // namespace regard
