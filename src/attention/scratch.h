#pragma once
// Working memory of one thread: handed out in pieces, kept for the next block of lanes, never cleared (a Buffer clears,
// and for one decode step that would cost more than the step).

#include <cstdint>

#include "hwy/aligned_allocator.h"

namespace regard {

class Scratch {
 public:
  // Everything handed out before is void.
  void reset(std::int64_t floats) {
    used_ = 0;
    if (floats <= size_) return;
    memory_ = hwy::AllocateAligned<float>(static_cast<std::size_t>(floats));
    size_ = floats;
  }
  // A piece of what reset() made room for, aligned for any vector if sizes are multiples of 16.
  float* take(std::int64_t floats) {
    float* piece = memory_.get() + used_;
    used_ += floats;
    return piece;
  }

 private:
  hwy::AlignedFreeUniquePtr<float[]> memory_;
  std::int64_t size_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace regard
