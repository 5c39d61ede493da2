#pragma once
// How far long work is, on one line of standard error that goes away when it is done.

#include <chrono>
#include <string>

#include "parallel/progress.h"

namespace regard::cli {

inline constexpr double kLongSeconds = 5;  // work that takes longer is announced

class ProgressLine : public Progress {
 public:
  // Not shown: still hears Ctrl-C.
  explicit ProgressLine(bool shown) : shown_(shown) {}
  ~ProgressLine() override { clear(); }
  void at(std::string_view what, std::int64_t done, std::int64_t total) override;  // throws Error{interrupted}
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_, drawn_ = false;
  std::string what_;
  double first_ = 0;  // how much of it was done when it began: what is left is judged by the rest
  Clock::time_point started_{}, last_drawn_{};
};

}  // namespace regard::cli
