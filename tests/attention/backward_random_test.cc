// Gradients of random problems, heads of every size, rows in memory in every way, masks of every kind: law 1 against
// the float64 reference, and the same bits on every target and with any number of threads.

#include <gtest/gtest.h>

#include "attention/backward_support.h"
#include "attention/drawn.h"

namespace regard::test {
namespace {

TEST(BackwardRandom, AgreesWithTheReferenceToTheSameBitsOnEveryForm) {
  unsigned seed = 1;
  for (const std::int64_t channels : {1, 2, 3, 5, 8, 16, 17, 31, 64, 80, 128, 512}) {
    for (const std::int64_t value_channels : {1, 7, 16, 33, 64, 96, 512}) {
      SCOPED_TRACE("seed " + std::to_string(++seed));
      const Drawn drawn = draw(channels, value_channels, seed);
      gradients_on_every_form(*drawn.made, incoming(drawn.made->problem, seed));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Several chunks of keys, several blocks of lanes, lengths that end inside of both.
TEST(BackwardRandom, LongOnes) {
  for (const auto& [queries, length, heads] :
       {std::array{70, 1300, 4}, std::array{333, 257, 3}, std::array{97, 1025, 2}}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(std::to_string(queries) + " over " + std::to_string(length) + (causal ? " causal" : ""));
      TestProblem made(shape_of(queries, length, heads, 1, 20, 9));
      made.problem.mask.causal = causal;
      if (queries == 97) made.problem.mask.window_left = 200;
      gradients_on_every_form(made, incoming(made.problem, 3));
    }
  }
}

}  // namespace
}  // namespace regard::test
