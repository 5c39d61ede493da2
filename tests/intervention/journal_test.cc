// A sweep's journal gives back every whole result, whatever stopped it, and touches nothing that is not its own.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "intervention/sweep_journal.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::read_file;
using testing::write_file;

constexpr std::int64_t kJournalled = 100, kEdits = 2, kResults = 5;
constexpr std::size_t kRecord = 8 + 8 + 3 * 8 * kEdits + 8;  // index, value, receipts, check
const std::string kFingerprint = "0123456789abcdef";

WhatIfResult result(std::int64_t i) {
  return {.index = 90 - 7 * i,
          .value = -1.5 / static_cast<double>(i + 3),
          .receipts = {{.matched = i, .changed = i + 1, .passed = i + 2}, {.matched = -i, .changed = 0, .passed = 1}}};
}

void expect_results(const SweepJournal& journal, std::int64_t n) {
  ASSERT_EQ(std::ssize(journal.done()), n);
  for (std::int64_t i = 0; i < n; ++i) {
    const WhatIfResult &found = journal.done()[i], wanted = result(i);
    EXPECT_EQ(found.index, wanted.index);
    EXPECT_EQ(found.value, wanted.value);
    ASSERT_EQ(found.receipts.size(), wanted.receipts.size());
    for (std::size_t e = 0; e < wanted.receipts.size(); ++e) {
      EXPECT_EQ(found.receipts[e].matched, wanted.receipts[e].matched);
      EXPECT_EQ(found.receipts[e].changed, wanted.receipts[e].changed);
      EXPECT_EQ(found.receipts[e].passed, wanted.receipts[e].passed);
    }
  }
}

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() : path_(folder_ / "s.json.partial") {}

  SweepJournal open(const std::string& fingerprint = kFingerprint, std::int64_t what_ifs = kJournalled) {
    return {path_, fingerprint, what_ifs, kEdits};
  }
  // The bytes of a journal of n results.
  std::string written(std::int64_t n) {
    std::filesystem::remove(path_);
    {
      SweepJournal journal(path_, kFingerprint, kJournalled, kEdits);
      for (std::int64_t i = 0; i < n; ++i) journal.add(result(i));
      journal.flush();
    }
    return read_file(path_);
  }

  testing::TempFolder folder_;
  std::filesystem::path path_;
};

TEST_F(JournalTest, GoesOnWhereItWas) {
  {
    SweepJournal journal = open();
    expect_results(journal, 0);
    for (std::int64_t i = 0; i < 3; ++i) journal.add(result(i));
    journal.flush();
    journal.add(result(3));  // never flushed
  }
  {
    SweepJournal journal = open();
    expect_results(journal, 3);
    for (std::int64_t i = 3; i < kResults; ++i) {
      journal.add(result(i));
      journal.flush();
    }
    journal.flush();  // nothing more
  }
  SweepJournal journal = open();
  expect_results(journal, kResults);
  journal.remove();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(JournalTest, CutAtAnyByteItHoldsTheWholeResults) {
  const std::string whole = written(kResults), header = written(0);
  ASSERT_EQ(whole.size(), header.size() + kResults * kRecord);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    SCOPED_TRACE(size);
    write_file(path_, whole.substr(0, size));
    const std::int64_t n = size < header.size() ? 0 : static_cast<std::int64_t>((size - header.size()) / kRecord);
    {
      SweepJournal journal = open();
      expect_results(journal, n);
      EXPECT_EQ(read_file(path_), whole.substr(0, header.size() + static_cast<std::size_t>(n) * kRecord));
      for (std::int64_t i = n; i < kResults; ++i) journal.add(result(i));
      journal.flush();
    }
    EXPECT_EQ(read_file(path_), whole);
  }
}

TEST_F(JournalTest, AChangedByteEndsWhatIsTrusted) {
  const std::string whole = written(kResults), header = written(0);
  for (std::size_t at = header.size(); at < whole.size(); ++at) {
    SCOPED_TRACE(at);
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write_file(path_, bytes);
    expect_results(open(), static_cast<std::int64_t>((at - header.size()) / kRecord));
  }
  // Zeros, as a machine that lost power may leave them.
  write_file(path_, whole + std::string(10 * kRecord, '\0'));
  expect_results(open(), kResults);
  EXPECT_EQ(read_file(path_), whole);
}

TEST_F(JournalTest, AResultThatNoWhatIfHasIsDropped) {
  written(kResults);
  expect_results(open(kFingerprint, 84), 0);  // the first result is of what-if 90
  written(kResults);
  expect_results(open(kFingerprint, 91), kResults);
}

TEST_F(JournalTest, OfAnotherSweepIsRefusedAndLeftAlone) {
  const std::string bytes = written(kResults);
  for (const std::string other : {"0123456789abcdeg", "1123456789abcdef", "0123456789abcde", "0123456789abcdef0", ""}) {
    SCOPED_TRACE(other);
    expect_error(ErrorCode::bad_input, {path_.string(), "another command"}, [&] { open(other); });
    EXPECT_EQ(read_file(path_), bytes);
  }
  expect_results(open(), kResults);
}

TEST_F(JournalTest, WhatIsNoJournalIsRefusedAndLeftAlone) {
  const std::string header = written(0);
  std::string changed = header;
  changed[3] = '_';
  for (const std::string& bytes : {std::string("notes of mine"), std::string("\0", 1), changed,
                                   header.substr(0, header.size() - 1) + " ", std::string(1000, 'r')}) {
    SCOPED_TRACE(bytes);
    write_file(path_, bytes);
    expect_error(ErrorCode::bad_input, {path_.string()}, [&] { open(); });
    EXPECT_EQ(read_file(path_), bytes);
  }
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  expect_error(ErrorCode::io, {path_.string()}, [&] { open(); });
  path_ = folder_ / "missing" / "s.json.partial";
  expect_error(ErrorCode::io, {path_.string()}, [&] { open(); });
}

TEST_F(JournalTest, OneProcessAtATime) {
  const std::string bytes = written(2);
  {
    const SweepJournal mine = open();
    const pid_t child = fork();
    if (child == 0) {
      bool refused = false;
      try {
        open();
      } catch (const Error& error) {
        refused = error.code == ErrorCode::bad_input && error.message.find("another sweep") != std::string::npos;
      }
      _exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(read_file(path_), bytes);
  }
  expect_results(open(), 2);
}

// A file that may not grow is what a full disk is: part of a result may be written, the error says so, and the next
// time goes on from the results that are whole.
TEST_F(JournalTest, AFullDiskIsSaidAndLosesNothingThatWasWhole) {
  const std::string whole = written(kResults), header = written(0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = signal(SIGXFSZ, SIG_IGN);
  for (std::size_t room = header.size(); room < whole.size(); room += 13) {
    SCOPED_TRACE(room);
    std::filesystem::remove(path_);
    {
      SweepJournal journal = open();
      for (std::int64_t i = 0; i < kResults; ++i) journal.add(result(i));
      rlimit limit = before;
      limit.rlim_cur = room;
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
      const std::optional<Error> error = testing::error_of([&] { journal.flush(); });
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::io);
      EXPECT_NE(error->message.find(path_.string()), std::string::npos) << error->message;
    }
    expect_results(open(), static_cast<std::int64_t>((room - header.size()) / kRecord));
  }
  signal(SIGXFSZ, old);
}

}  // namespace
}  // namespace regard
