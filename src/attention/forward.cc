#include "attention/forward.h"

#include <algorithm>

#include "attention/check_shape.h"
#include "attention/kernel.h"
#include "attention/plan.h"
#include "parallel/parallel_for.h"

namespace regard {
namespace {

// Key blocks of a unit that one thread takes at a time when a unit is shared.
struct Part {
  std::size_t unit;
  BlockRange blocks;
};

struct Shared {
  std::vector<LaneBlock> lanes;
  BlockRange blocks;
  std::int64_t state_size = 0;
  std::int64_t first_state = 0;  // where its states are: [blocks][state_size]
};

// Too few units for the threads: their keys are shared out in runs of blocks. Every block leaves its state; the states
// of a unit are merged in block order, so that the runs leave no trace in the result.
void forward_shared(const Plan& plan, const Output& output, std::vector<Scratch>& scratch) {
  const auto& units = plan.units();
  std::vector<Shared> shared(units.size());
  std::int64_t blocks = 0, floats = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    Shared& mine = shared[i];
    mine.lanes = plan.lanes(units[i]);
    mine.blocks = blocks_of(reach_of(mine.lanes));
    mine.state_size = state_size(mine.lanes);
    mine.first_state = floats;
    floats += (mine.blocks.end - mine.blocks.begin) * mine.state_size;
    blocks += mine.blocks.end - mine.blocks.begin;
  }
  Scratch memory;
  memory.reset(floats);
  float* states = memory.take(floats);

  const std::int64_t run = std::max<std::int64_t>(1, blocks / (std::ssize(scratch) * 8));
  std::vector<Part> parts;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const BlockRange all = shared[i].blocks;
    for (std::int64_t block = all.begin; block < all.end; block += run) {
      parts.push_back({i, {block, std::min(block + run, all.end)}});
    }
  }
  parallel_for(std::ssize(parts), [&](std::int64_t i, int thread) {
    const Shared& mine = shared[parts[i].unit];
    const std::int64_t first = mine.first_state + (parts[i].blocks.begin - mine.blocks.begin) * mine.state_size;
    attend_part(mine.lanes, parts[i].blocks, states + first, scratch[thread]);
  });
  parallel_for(std::ssize(shared), [&](std::int64_t i, int thread) {
    const Shared& mine = shared[i];
    attend_merge(mine.lanes, mine.blocks.end - mine.blocks.begin, states + mine.first_state, output, scratch[thread]);
  });
}

}  // namespace

void forward(const Problem& problem, View<float, 3> out, View<RowSoftmax, 2> softmax, View<float, 2> log_sum_exp) {
  validate(problem);
  const std::int64_t rows = problem.q.shape[0], heads = problem.q.shape[1];
  check_shape(out, {rows, heads, problem.value_channels}, true, "out");
  check_shape(softmax, {rows, heads}, false, "softmax");
  check_shape(log_sum_exp, {rows, heads}, false, "log_sum_exp");
  if (rows * heads == 0) return;

  const int threads = thread_count();
  const Plan plan(problem, threads);
  const Output output{out, softmax, log_sum_exp};
  std::vector<Scratch> scratch(threads);
  if (threads > 1 && std::ssize(plan.units()) < 4 * threads) {
    forward_shared(plan, output, scratch);
    return;
  }
  parallel_for(std::ssize(plan.units()),
               [&](std::int64_t i, int thread) { attend(plan.lanes(plan.units()[i]), output, scratch[thread]); });
}

}  // namespace regard
