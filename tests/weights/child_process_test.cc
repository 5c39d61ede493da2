#include "weights/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "support/errors.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::read_file;
using testing::TempFolder;

ChildProcess shell(const TempFolder& folder, const std::string& script) {
  return {{"sh", "-c", script}, {}, folder / "out", -1};
}

TEST(ChildProcess, GivesExitStatusAndKeepsWhatItPrints) {
  const TempFolder folder;
  int ticks = 0;
  EXPECT_EQ(run(shell(folder, "echo out; echo err >&2; exit 3"), [&] { ++ticks; }), 3);
  EXPECT_EQ(read_file(folder / "out"), "out\nerr\n");
  EXPECT_EQ(run(shell(folder, "kill -9 $$"), [] {}), 128 + SIGKILL);
  EXPECT_EQ(run(shell(folder, "sleep 0.2"), [&] { ++ticks; }), 0);
  EXPECT_GT(ticks, 1);
}

TEST(ChildProcess, StandardInputIsEmptyAndTheEnvironmentIsOursWithChanges) {
  const TempFolder folder;
  setenv("REGARD_TEST_KEPT", "kept", 1);
  setenv("REGARD_TEST_CHANGED", "old", 1);
  ChildProcess child = shell(folder, "cat; echo $REGARD_TEST_KEPT $REGARD_TEST_CHANGED $REGARD_TEST_NEW");
  child.environment = {{"REGARD_TEST_CHANGED", "new value"}, {"REGARD_TEST_NEW", "a=b"}};
  EXPECT_EQ(run(child, [] {}), 0);
  EXPECT_EQ(read_file(folder / "out"), "kept new value a=b\n");
  EXPECT_STREQ(std::getenv("REGARD_TEST_CHANGED"), "old");
}

TEST(ChildProcess, ArgumentsAreNotReadByAShell) {
  const TempFolder folder;
  EXPECT_EQ(run({{"printf", "%s", "$(echo no) `no` ; 'no'"}, {}, folder / "out", -1}, [] {}), 0);
  EXPECT_EQ(read_file(folder / "out"), "$(echo no) `no` ; 'no'");
}

TEST(ChildProcess, SaysWhenThereIsNoSuchProgram) {
  const TempFolder folder;
  expect_error(ErrorCode::not_found, {"regard-no-such-program"}, [&] {
    run({{"regard-no-such-program"}, {}, folder / "out", -1}, [] {});
  });
}

TEST(ChildProcess, IsStoppedWhenTheCallerHasEnough) {
  const TempFolder folder;
  for (const char* script : {"echo $$; exec sleep 60", "trap '' TERM; echo $$; while :; do sleep 0.1; done"}) {
    std::filesystem::remove(folder / "out");
    const auto start = std::chrono::steady_clock::now();
    const auto stop_once_it_runs = [&] {
      if (std::filesystem::exists(folder / "out") && !read_file(folder / "out").empty())
        throw Error(ErrorCode::interrupted, "stopped");
    };
    expect_error(ErrorCode::interrupted, {"stopped"}, [&] { run(shell(folder, script), stop_once_it_runs); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    const pid_t pid = std::stoi(read_file(folder / "out"));
    EXPECT_NE(kill(pid, 0), 0) << "still there";
  }
}

TEST(ChildProcess, KeepsTheInheritedFileOpenAndNoOther) {
  const TempFolder folder;
  const int kept = open((folder / "kept").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int closed = open((folder / "closed").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ChildProcess child =
      shell(folder, fmt::format("echo yes >&{}; if (echo no >&{}) 2>/dev/null; then exit 1; fi", kept, closed));
  child.inherited_file = kept;
  EXPECT_EQ(run(child, [] {}), 0);
  EXPECT_EQ(read_file(folder / "kept"), "yes\n");
  EXPECT_EQ(read_file(folder / "closed"), "");
  EXPECT_NE(fcntl(kept, F_GETFD) & FD_CLOEXEC, 0) << "ours is unchanged";
  close(kept);
  close(closed);
}

}  // namespace
}  // namespace regard
