#include "attention/backward.h"

#include <algorithm>

#include "attention/backward_plan.h"
#include "attention/check_shape.h"
#include "parallel/parallel_for.h"

namespace regard {
namespace {

// Memory for the parts of d_q of the units in work at once, unless one unit alone needs more.
constexpr std::int64_t kWaveFloats = std::int64_t{32} << 20;

void check_key_gradients(const Problem& problem, std::span<const View<float, 3>> gradients, std::int64_t channels,
                         std::string_view name) {
  if (gradients.empty()) return;
  if (gradients.size() != problem.sequences.size()) {
    throw Error(ErrorCode::bad_input, fmt::format("attention: {} has {} sequences, the problem {}", name,
                                                  gradients.size(), problem.sequences.size()));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    check_shape(gradients[i], {problem.sequences[i].length, problem.kv_heads, channels}, true,
                fmt::format("{} of sequence {}", name, i));
  }
}

void check(const BackwardCall& call) {
  const auto [rows, heads, channels] = call.problem.q.shape;
  const Gradients& gradients = call.gradients;
  check_shape(call.out, {rows, heads, call.problem.value_channels}, true, "out");
  check_shape(call.softmax, {rows, heads}, true, "softmax");
  check_shape(call.d_out, {rows, heads, call.problem.value_channels}, true, "d_out");
  check_shape(call.d_log_sum_exp, {rows, heads}, false, "d_log_sum_exp");
  check_shape(gradients.d_q, {rows, heads, channels}, false, "d_q");
  check_key_gradients(call.problem, gradients.d_k, channels, "d_k");
  check_key_gradients(call.problem, gradients.d_v, call.problem.value_channels, "d_v");
  check_shape(gradients.d_sinks, {heads}, false, "d_sinks");
  if (gradients.d_sinks.data != nullptr && call.problem.sinks.empty() && heads > 0) {
    throw Error(ErrorCode::bad_input, "attention: d_sinks is asked for, but the problem has no sinks");
  }
  const View<const float, 3>& bias = call.problem.mask.bias;
  if (gradients.d_bias.data == nullptr) return;
  if (bias.data == nullptr) {
    throw Error(ErrorCode::bad_input, "attention: d_bias is asked for, but the problem has no bias");
  }
  check_shape(gradients.d_bias, bias.shape, true, "d_bias");
  for (int axis = 0; axis < 3; ++axis) {
    if (bias.stride[axis] != 0 || gradients.d_bias.stride[axis] == 0 || bias.shape[axis] <= 1) continue;
    throw Error(ErrorCode::bad_input,
                fmt::format("attention: axis {} of the bias is broadcast, that of d_bias is not", axis),
                "give d_bias stride 0 where the bias has it");
  }
}

// Everything 0, for what no edge adds to.
template <int Rank>
void clear(View<float, Rank> view) {
  if (view.data == nullptr) return;
  for (std::int64_t& extent : view.shape) {
    const auto axis = &extent - view.shape.data();
    if (view.stride[axis] == 0) extent = std::min<std::int64_t>(extent, 1);
  }
  if constexpr (Rank == 1) {
    for (std::int64_t i = 0; i < view.shape[0]; ++i) view(i) = 0;
  } else {
    for (std::int64_t i = 0; i < view.shape[0]; ++i) clear(view[i]);
  }
}

void run_wave(const BackwardCall& call, std::span<BackwardUnit> units, std::int64_t begin, std::int64_t end,
              const std::vector<std::vector<std::int64_t>>& rows, const Visibility& visibility,
              const SharedBias& shared, std::vector<Scratch>& scratch, Scratch& parts, std::vector<double>& d_sinks) {
  const bool sinks = !d_sinks.empty();
  parallel_for(end - begin, [&](std::int64_t i, int thread) {
    BackwardUnit& unit = units[begin + i];
    fill_lanes(call.problem, visibility, rows[unit.sequence], unit);
    unit.delta.resize(unit.lanes);
    unit.sink.resize(sinks ? unit.lanes : 0);
    for (std::size_t block = 0; block < unit.blocks.size(); ++block) {
      backward_deltas(call, unit, block, scratch[thread]);
    }
  });
  if (call.gradients.d_q.data != nullptr) {
    const std::int64_t step = row_step(call.problem.q.shape[2]);
    std::int64_t floats = 0;
    for (std::int64_t u = begin; u < end; ++u) floats += units[u].chunks * units[u].lanes * step;
    parts.reset(floats);
    for (std::int64_t u = begin; u < end; ++u) units[u].partial = parts.take(units[u].chunks * units[u].lanes * step);
  }
  const std::vector<std::vector<BackwardTask>> groups = backward_groups(units, begin, end, shared);
  parallel_for(std::ssize(groups), [&](std::int64_t i, int thread) {
    for (const BackwardTask& task : groups[i]) backward_chunk(call, units[task.unit], task.chunk, scratch[thread]);
  });
  if (sinks) {
    for (std::int64_t u = begin; u < end; ++u) {
      std::int64_t lane = 0;
      for (const LaneBlock& block : units[u].blocks) {
        for (std::int32_t head : block.head) d_sinks[head] += double{units[u].sink[lane++]};
      }
    }
  }
  if (call.gradients.d_q.data != nullptr) {
    parallel_for(end - begin, [&](std::int64_t i, int) {
      const BackwardUnit& unit = units[begin + i];
      for (std::size_t block = 0; block < unit.blocks.size(); ++block) backward_queries(call, unit, block);
    });
  }
}

}  // namespace

void backward(const Problem& problem, View<const float, 3> out, View<const RowSoftmax, 2> softmax,
              View<const float, 3> d_out, const Gradients& gradients, View<const float, 2> d_log_sum_exp) {
  validate(problem);
  const BackwardCall call{problem, out, softmax, d_out, d_log_sum_exp, gradients};
  check(call);
  clear(gradients.d_bias);
  // In float64: a few numbers that each sum over every row.
  std::vector<double> d_sinks(gradients.d_sinks.data != nullptr ? problem.q.shape[1] : 0);
  if (problem.q.shape[0] * problem.q.shape[1] == 0) {
    for (const View<float, 3>& each : gradients.d_k) clear(each);
    for (const View<float, 3>& each : gradients.d_v) clear(each);
    clear(gradients.d_sinks);
    return;
  }

  const Visibility visibility(problem);
  const std::vector<std::vector<std::int64_t>> rows = rows_by_sequence(problem);
  const SharedBias shared = shared_bias(problem, gradients.d_bias);
  std::vector<BackwardUnit> units = backward_units(problem);
  std::vector<Scratch> scratch(thread_count());
  Scratch parts;
  const std::int64_t group = problem.q.shape[1] / problem.kv_heads, step = row_step(problem.q.shape[2]);
  for (std::int64_t begin = 0, end = 0; begin < std::ssize(units); begin = end) {
    std::int64_t floats = 0;
    while (end < std::ssize(units)) {
      floats += units[end].chunks * std::ssize(rows[units[end].sequence]) * group * step;
      if (end > begin && floats > kWaveFloats) break;
      ++end;
    }
    run_wave(call, units, begin, end, rows, visibility, shared, scratch, parts, d_sinks);
    for (std::int64_t u = begin; u < end; ++u) units[u] = BackwardUnit{};
  }
  for (std::size_t h = 0; h < d_sinks.size(); ++h) gradients.d_sinks(h) = static_cast<float>(d_sinks[h]) + 0.0f;
}

}  // namespace regard
