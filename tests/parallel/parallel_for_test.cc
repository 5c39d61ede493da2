#include "parallel/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tensor/error.h"

namespace regard {
namespace {

class ParallelFor : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(before_); }
  const int before_ = thread_count();
};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, ::testing::Values(1, 2, 3, 8));

TEST_P(ParallelFor, CallsEveryIndexOnce) {
  for (std::int64_t n : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(n));
    std::atomic<int> outside{0};
    parallel_for(n, [&](std::int64_t i, int thread) {
      ++calls[static_cast<std::size_t>(i)];
      if (thread < 0 || thread >= GetParam()) ++outside;
    });
    for (const std::atomic<int>& c : calls) EXPECT_EQ(c, 1);
    EXPECT_EQ(outside, 0);
  }
  parallel_for(-3, [](std::int64_t, int) { FAIL(); });
}

TEST_P(ParallelFor, AThreadNumberIsInUseOnceAtATime) {
  // What memory per thread relies on.
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(GetParam()));
  std::atomic<int> clashes{0};
  parallel_for(500, [&](std::int64_t, int thread) {
    if (busy[static_cast<std::size_t>(thread)]++ != 0) ++clashes;
    std::this_thread::yield();
    --busy[static_cast<std::size_t>(thread)];
  });
  EXPECT_EQ(clashes, 0);
}

TEST_P(ParallelFor, UsesTheThreadsItWasGiven) {
  // As many indices as threads, none of which ends before all have begun. An OpenMP runtime may give fewer threads than
  // asked for, so nobody waits for ever.
  std::atomic<int> begun{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  parallel_for(GetParam(), [&](std::int64_t, int) {
    ++begun;
    while (begun < GetParam() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(begun, GetParam());
  EXPECT_LT(std::chrono::steady_clock::now(), deadline) << "the indices did not run side by side";
}

TEST_P(ParallelFor, ThrowsTheErrorOfTheLowestIndexWhateverTheThreadsDo) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    try {
      parallel_for(64, [&](std::int64_t i, int) {
        if (i == 9) std::this_thread::yield();  // give later ones a chance to throw first
        if (i >= 9) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& e) {
      ASSERT_STREQ(e.what(), "9");
    }
  }
}

TEST_P(ParallelFor, AnErrorStopsTheIndicesAfterIt) {
  std::atomic<std::int64_t> calls{0};
  const std::int64_t n = 1 << 20;
  EXPECT_THROW(parallel_for(n,
                            [&](std::int64_t i, int) {
                              ++calls;
                              if (i == 5) throw Error(ErrorCode::interrupted, "stop");
                              if (i > 5) std::this_thread::sleep_for(std::chrono::microseconds(10));
                            }),
               Error);
  EXPECT_GE(calls, 6);
  EXPECT_LT(calls, n / 2);
  std::atomic<int> again{0};
  parallel_for(10, [&](std::int64_t, int) { ++again; });
  EXPECT_EQ(again, 10) << "an error must not spoil the next loop";
}

TEST_P(ParallelFor, NestedLoopsRunOnTheirCaller) {
  std::atomic<int> calls{0}, wrong{0};
  parallel_for(6, [&](std::int64_t, int) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(5, [&](std::int64_t, int thread) {
      ++calls;
      if (GetParam() > 1 && (thread != 0 || std::this_thread::get_id() != outer)) ++wrong;
    });
  });
  EXPECT_EQ(calls, 30);
  EXPECT_EQ(wrong, 0);
}

TEST_P(ParallelFor, NestedErrorsPassThrough) {
  EXPECT_THROW(parallel_for(4,
                            [&](std::int64_t i, int) {
                              parallel_for(4, [&](std::int64_t j, int) {
                                if (i == 2 && j == 3) throw Error(ErrorCode::bad_input, "inner");
                              });
                            }),
               Error);
}

TEST(ThreadCount, BeginsWithTheProcessorsAndRefusesLessThanOne) {
  const int before = thread_count();
  EXPECT_GE(before, 1);
  for (int n : {0, -1, -100}) {
    try {
      set_thread_count(n);
      ADD_FAILURE() << n << " threads";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::usage);
    }
    EXPECT_EQ(thread_count(), before);
  }
  set_thread_count(5);
  EXPECT_EQ(thread_count(), 5);
  set_thread_count(before);
}

}  // namespace
}  // namespace regard
