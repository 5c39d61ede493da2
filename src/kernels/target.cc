#include "kernels/target.h"

#include <cstdlib>

#include "hwy/highway.h"
#include "tensor/error.h"

namespace regard {
namespace {

std::vector<std::int64_t> runnable() {
  static const std::vector<std::int64_t> targets = [] {
    std::vector<std::int64_t> found;
    const std::int64_t bits = (hwy::SupportedTargets() | HWY_EMU128) & HWY_TARGETS;
    for (std::int64_t rest = bits; rest != 0; rest &= rest - 1) found.push_back(rest & ~(rest - 1));
    return found;
  }();
  return targets;
}

bool g_forced = false;

void choose(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(target);
}

// The first choice is made before main, so that a kernel can never run on a target nobody chose.
const bool g_initialised = [] {
  runnable();
  const char* wanted = std::getenv("REGARD_TARGET");
  choose(runnable().front());
  if (wanted != nullptr && *wanted != '\0') {
    for (std::int64_t target : runnable()) {
      if (wanted == std::string(hwy::TargetName(target))) {
        choose(target);
        g_forced = true;
      }
    }
  }
  return true;
}();

}  // namespace

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  for (std::int64_t target : runnable()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void set_target(const std::string& name) {
  if (name.empty() || name == "best") {
    choose(runnable().front());
    g_forced = false;
    return;
  }
  std::string names;
  for (std::int64_t target : runnable()) {
    if (name == hwy::TargetName(target)) {
      choose(target);
      g_forced = true;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
  }
  throw Error(ErrorCode::usage, fmt::format("this processor has no target '{}'", name), fmt::format("use one of: {}", names));
}

std::string current_target() {
  const char* wanted = std::getenv("REGARD_TARGET");
  if (!g_forced && wanted != nullptr && *wanted != '\0') set_target(wanted);  // says which names there are
  const std::int64_t target = hwy::SupportedTargets() & HWY_TARGETS;
  if (target == HWY_EMU128 && !g_forced) {
    throw Error(ErrorCode::unsupported, "this processor has no instruction set with fused multiply-add that regard knows",
                "force the slow portable kernels with --target EMU128");
  }
  return hwy::TargetName(target & ~(target - 1));
}

}  // namespace regard
