#include "lesson/normal.h"

#include "parallel/counter_random.h"
#include "parallel/parallel_for.h"

namespace regard {

Tensor<float, 2> normal_rows(std::int64_t rows, std::int64_t channels, std::uint64_t seed) {
  Tensor<float, 2> result({rows, channels});
  const CounterRandom random(RandomUse::lesson, seed);
  parallel_for(rows, [&](std::int64_t r, int) {
    for (std::int64_t c = 0; c < channels; ++c)
      result(r, c) = static_cast<float>(random.normal_at(static_cast<std::uint64_t>(r * channels + c)));
  });
  return result;
}

}  // namespace regard
