#include "kernels/target.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

#include "hwy/highway.h"
#include "tensor/error.h"

namespace regard {
namespace {

// One bit per target, as Highway has them; a lower bit is a better target.
std::vector<std::int64_t> find_runnable() {
  std::vector<std::int64_t> found;
  for (std::int64_t rest = (hwy::SupportedTargets() | HWY_EMU128) & HWY_TARGETS; rest != 0; rest &= rest - 1)
    found.push_back(rest & -rest);
  return found;
}

class Choice {
 public:
  static Choice& of_this_process() {
    static Choice choice;
    return choice;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (std::int64_t target : runnable_) names.emplace_back(hwy::TargetName(target));
    return names;
  }

  void set(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (!try_set(name)) throw unknown(name, "");
    unknown_in_environment_.clear();
  }

  std::string current() {
    const std::lock_guard lock(mutex_);
    if (!unknown_in_environment_.empty()) throw unknown(unknown_in_environment_, " (REGARD_TARGET)");
    if (current_ == 0 || (current_ == HWY_EMU128 && !forced_)) {
      throw Error(ErrorCode::unsupported,
                  "this processor has no instruction set with fused multiply-add that regard knows",
                  current_ == 0 ? "use a build that holds the portable kernels"
                                : "force the slow portable kernels with --target EMU128");
    }
    return hwy::TargetName(current_);
  }

 private:
  // The environment is read once: a program that sets a target afterwards is not overruled by it.
  Choice() : runnable_(find_runnable()) {
    const char* wanted = std::getenv("REGARD_TARGET");
    try_set("");
    if (wanted != nullptr && !try_set(wanted)) unknown_in_environment_ = wanted;
  }

  bool try_set(const std::string& name) {
    const bool best = name.empty() || name == "best";
    for (std::int64_t target : runnable_) {
      if (!best && name != hwy::TargetName(target)) continue;
      hwy::GetChosenTarget().Update(target);
      current_ = target;
      forced_ = !best;
      return true;
    }
    return false;
  }

  Error unknown(const std::string& name, const char* where) const {
    return Error(ErrorCode::usage, fmt::format("this processor has no target '{}'{}", name, where),
                 fmt::format("use one of: best, {}", fmt::join(names(), ", ")));
  }

  const std::vector<std::int64_t> runnable_;
  std::mutex mutex_;
  std::int64_t current_ = 0;  // 0: this build has none that runs here
  bool forced_ = false;
  std::string unknown_in_environment_;
};

}  // namespace

std::vector<std::string> available_targets() { return Choice::of_this_process().names(); }

void set_target(const std::string& name) { Choice::of_this_process().set(name); }

std::string current_target() { return Choice::of_this_process().current(); }

bool choose_first_target() {
  Choice::of_this_process();
  return true;
}

}  // namespace regard
