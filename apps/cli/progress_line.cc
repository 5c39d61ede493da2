#include "progress_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "interrupt.h"
#include "tensor/error.h"

namespace regard::cli {
namespace {

constexpr auto kFirst = std::chrono::milliseconds(300);  // what is done sooner needs no line
constexpr auto kEvery = std::chrono::milliseconds(100);
constexpr int kBarColumns = 24;

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 6000) return fmt::format("{} min", (whole + 30) / 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

void ProgressLine::at(std::string_view what, std::int64_t done, std::int64_t total) {
  if (interrupted())
    throw Error(ErrorCode::interrupted, fmt::format("interrupted, {}: {} of {} were done", what, done, total));
  if (!shown_) return;
  const auto now = Clock::now();
  const double fraction = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  if (what != what_) {
    what_ = what;
    started_ = now;
    first_ = fraction;
  }
  if (done >= total || now - started_ < kFirst || now - last_drawn_ < kEvery) return;
  last_drawn_ = now;
  const int filled = static_cast<int>(fraction * kBarColumns);
  std::string bar;
  for (int i = 0; i < kBarColumns; ++i) bar += i < filled ? "█" : "░";
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const std::string left = fraction > first_ ? duration(elapsed * (1 - fraction) / (fraction - first_)) + " left" : "";
  std::fputs(fmt::format("\r\x1b[K{} {} {:3.0f} %  {}", what_, bar, fraction * 100, left).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace regard::cli
