// The choice of an instruction set: which code runs, what is refused, and what REGARD_TARGET does.

#include "kernels/target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/target_test.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

const char* Running() { return hwy::TargetName(HWY_TARGET); }

// a * b + c as each target makes it.
void FmaOf(float a, float b, float c, float* y) {
  const F32 d;
  *y = hn::GetLane(Fma(hn::Set(d, a), hn::Set(d, b), hn::Set(d, c)));
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "support/targets.h"
#include "tensor/error.h"

namespace regard {
namespace {

HWY_EXPORT(Running);
HWY_EXPORT(FmaOf);
std::string running() { return HWY_DYNAMIC_DISPATCH(Running)(); }
std::string best() { return available_targets().front(); }
// Another one than the best, except in builds with a single target (sanitizers).
std::string last() { return available_targets().back(); }

TEST(Target, TheCodeThatRunsIsTheOneThatWasSet) {
  const std::vector<std::string> names = available_targets();
  ASSERT_GE(names.size(), 1u);
#if HWY_TARGETS & HWY_EMU128
  EXPECT_EQ(names.back(), "EMU128") << "runs anywhere, and is the last choice";
#endif
  std::size_t seen = 0;
  testing::on_each_target([&](const std::string& name) {
    EXPECT_EQ(running(), name);
    EXPECT_EQ(current_target(), name);
    ++seen;
  });
  EXPECT_EQ(seen, names.size());
}

TEST(Target, BestIsTheFirst) {
  const testing::Restore restore;
  for (const char* name : {"", "best"}) {
    set_target(last());
    EXPECT_EQ(running(), last());
    set_target(name);
    EXPECT_EQ(running(), best());
  }
}

TEST(Target, AnUnknownOneIsRefusedNamesTheOthersAndChangesNothing) {
  const testing::Restore restore;
  set_target(last());
  for (const char* name : {"AVX9", "avx2", "SSE4", " EMU128", "best "}) {
    try {
      set_target(name);
      ADD_FAILURE() << name << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::usage);
      EXPECT_NE(e.message.find(name), std::string::npos) << e.message;
      for (const std::string& other : available_targets()) EXPECT_NE(e.hint.find(other), std::string::npos) << e.hint;
    }
    EXPECT_EQ(running(), last());
    EXPECT_EQ(current_target(), last());
  }
}

TEST(Target, EveryTargetRoundsAFusedProductOnce) {
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24: the product has 25 bits and would lose it if it were rounded first.
  const float x = 1 + 0x1p-12f;
  testing::on_each_target([&](const std::string&) {
    float y;
    HWY_DYNAMIC_DISPATCH(FmaOf)(x, x, -(1 + 0x1p-11f), &y);
    EXPECT_EQ(y, 0x1p-24f);
  });
}

TEST(Target, MayBeSetAndAskedFromSeveralThreads) {
  const testing::Restore restore;
  const std::vector<std::string> names = available_targets();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        set_target(names[static_cast<std::size_t>(t + i) % names.size()]);
        const std::string now = current_target();
        EXPECT_NE(std::find(names.begin(), names.end(), now), names.end());
        EXPECT_FALSE(running().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// REGARD_TARGET is read before main, so it is tried on a second process of this program, which answers by its exit code
// whether the named check holds there.
bool holds_with(const std::string& target, const std::string& check) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0) return false;
  const std::string program(self, static_cast<std::size_t>(length));
  return std::system(("REGARD_TARGET='" + target + "' '" + program + "' --child " + check).c_str()) == 0;
}

TEST(Target, TheEnvironmentSetsTheFirst) {
  EXPECT_TRUE(holds_with(last(), "runs-what-the-environment-says"));
  EXPECT_TRUE(holds_with(best(), "runs-what-the-environment-says"));
  EXPECT_TRUE(holds_with("", "runs-the-best"));
  EXPECT_TRUE(holds_with("best", "runs-the-best"));
  EXPECT_TRUE(holds_with(last(), "obeys-the-program-afterwards"));
  EXPECT_TRUE(holds_with("AVX9", "refuses-the-environment-until-a-target-is-set"));
  EXPECT_FALSE(holds_with(last(), "refuses-the-environment-until-a-target-is-set")) << "a check must be able to fail";
  EXPECT_FALSE(holds_with(last(), "no-such-check"));
}

bool refuses_the_environment() {
  try {
    current_target();
  } catch (const Error& e) {
    return e.code == ErrorCode::usage && e.message.find("AVX9") != std::string::npos &&
           e.message.find("REGARD_TARGET") != std::string::npos;
  }
  return false;
}

bool child(const std::string& check) {
  if (check == "runs-what-the-environment-says") {
    const std::string wanted = std::getenv("REGARD_TARGET");
    return running() == wanted && current_target() == wanted;  // it ran before anybody asked for its name
  }
  if (check == "runs-the-best") return running() == best() && current_target() == best();
  if (check == "obeys-the-program-afterwards") {
    set_target("best");
    return current_target() == best() && running() == best();
  }
  if (check == "refuses-the-environment-until-a-target-is-set") {
    const bool twice = refuses_the_environment() && refuses_the_environment();
    set_target(last());
    return twice && current_target() == last();
  }
  return false;
}

}  // namespace
}  // namespace regard

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--child") return regard::child(argv[2]) ? 0 : 1;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

#endif  // HWY_ONCE
