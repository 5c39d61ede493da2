#pragma once

#include <cstdint>

namespace regard {

// What became of one edit.
struct Receipt {
  std::int64_t matched = 0;  // cells that it names
  std::int64_t changed = 0;  // of those, cells that hold other bits than without it
  std::int64_t passed = 0;   // of those matched, cells that ran at all: a sweep leaves out what cannot reach the metric

  Receipt& operator+=(const Receipt& other) {
    matched += other.matched;
    changed += other.changed;
    passed += other.passed;
    return *this;
  }
};

}  // namespace regard
