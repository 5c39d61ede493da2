#pragma once

#include <vector>

#include "interrupt.h"
#include "model/tap.h"
#include "tensor/error.h"

namespace regard::cli {

// Ctrl-C is heard between layers, not only between chunks.
class InterruptTap final : public Tap {
 public:
  std::vector<Reader*> readers(std::int64_t, std::span<const Row>) override {
    if (interrupted()) throw Error(ErrorCode::interrupted, "interrupted while reading: nothing was written");
    return {};
  }
};

}  // namespace regard::cli
