#include "attention/read.h"

#include <algorithm>
#include <map>

#include "attention/kernel.h"
#include "attention/plan.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard {
namespace {

void check_softmax(const Problem& problem, const View<const RowSoftmax, 2>& softmax) {
  const std::int64_t rows = problem.q.shape[0], heads = problem.q.shape[1];
  if (rows * heads == 0) return;
  if (softmax.data == nullptr || softmax.shape[0] != rows || softmax.shape[1] != heads) {
    throw Error(ErrorCode::bad_input,
                fmt::format("attention: reading needs the softmax of all {} rows and {} heads", rows, heads),
                "hand over what forward() gave");
  }
}

class Readers final : public TileSink {
 public:
  Readers(std::span<Reader* const> readers, int thread) : readers_(readers), thread_(thread) {}
  void tile(const WeightTile& tile) override {
    for (Reader* reader : readers_) reader->tile(tile, thread_);
  }

 private:
  std::span<Reader* const> readers_;
  int thread_;
};

// Copies the part of each tile that lies in a rectangle of keys to where its lane belongs.
class Copier final : public TileSink {
 public:
  Copier(std::int64_t key_begin, const std::map<std::pair<std::int64_t, std::int32_t>, std::vector<float*>>& places)
      : key_begin_(key_begin), places_(places) {}
  void tile(const WeightTile& tile) override {
    for (int lane = 0; lane < tile.lanes; ++lane) {
      for (float* place : places_.at({tile.row[lane], tile.head[lane]})) {
        float* to = place + (tile.key_begin - key_begin_);
        for (std::int64_t key = 0; key < tile.keys; ++key) to[key] = tile.weight[key * tile.stride + lane];
      }
    }
  }

 private:
  std::int64_t key_begin_;
  const std::map<std::pair<std::int64_t, std::int32_t>, std::vector<float*>>& places_;
};

}  // namespace

void read(const Problem& problem, View<const RowSoftmax, 2> softmax, std::span<Reader* const> readers) {
  validate(problem);
  check_softmax(problem, softmax);
  const int threads = thread_count();
  for (Reader* reader : readers) reader->begin(problem, threads);
  if (problem.q.shape[0] * problem.q.shape[1] > 0) {
    const Plan plan(problem, threads);
    std::vector<Scratch> scratch(threads);
    parallel_for(std::ssize(plan.units()), [&](std::int64_t i, int thread) {
      Readers sink(readers, thread);
      const std::vector<LaneBlock> lanes = plan.lanes(plan.units()[i]);
      weigh(lanes, reach_of(lanes), softmax, sink, scratch[thread]);
    });
  }
  for (Reader* reader : readers) reader->finish();
}

Tensor<float, 3> weights(const Problem& problem, View<const RowSoftmax, 2> softmax, std::span<const std::int64_t> rows,
                         std::span<const std::int32_t> heads, std::int64_t key_begin, std::int64_t key_end) {
  validate(problem);
  check_softmax(problem, softmax);
  for (std::int64_t row : rows) {
    if (row < 0 || row >= problem.q.shape[0]) {
      throw Error(ErrorCode::bad_input, fmt::format("attention: there is no row {} of {}", row, problem.q.shape[0]));
    }
  }
  for (std::int32_t head : heads) {
    if (head < 0 || head >= problem.q.shape[1]) {
      throw Error(ErrorCode::bad_input, fmt::format("attention: there is no head {} of {}", head, problem.q.shape[1]));
    }
  }
  if (key_begin < 0 || key_end < key_begin) {
    throw Error(ErrorCode::bad_input, fmt::format("attention: {}..{} is not a range of keys", key_begin, key_end));
  }
  const std::int64_t keys = key_end - key_begin;
  Tensor<float, 3> result({std::ssize(rows), std::ssize(heads), keys});
  if (result.size() == 0) return result;

  // One block of lanes per (sequence, key/value head); a lane asked for twice is computed once.
  const Visibility visibility(problem);
  const std::int64_t group = problem.q.shape[1] / problem.kv_heads;
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<float*>> places;
  for (std::int64_t r = 0; r < std::ssize(rows); ++r) {
    for (std::int64_t h = 0; h < std::ssize(heads); ++h) places[{rows[r], heads[h]}].push_back(&result(r, h, 0));
  }
  std::map<std::pair<std::int32_t, std::int64_t>, LaneBlock> by_head;
  std::vector<LaneBlock> blocks;
  const auto flush = [&](LaneBlock& block) {
    if (block.lanes() > 0) blocks.push_back(std::exchange(block, LaneBlock{}));
  };
  for (const auto& [lane, unused] : places) {
    const std::int32_t sequence = problem.rows[lane.first].sequence;
    LaneBlock& block = by_head[{sequence, lane.second / group}];
    block.problem = &problem;
    block.sequence = &problem.sequences[sequence];
    block.sequence_index = sequence;
    block.kv_head = lane.second / group;
    block.add(problem, visibility, lane.first, lane.second);
    if (block.lanes() == 8 * 3 * vector_lanes()) flush(block);
  }
  for (auto& [unused, block] : by_head) flush(block);

  std::vector<Scratch> scratch(thread_count());
  parallel_for(std::ssize(blocks), [&](std::int64_t i, int thread) {
    Copier sink(key_begin, places);
    weigh(std::span(&blocks[i], 1), {key_begin, key_end}, softmax, sink, scratch[thread]);
  });
  return result;
}

Tensor<float, 3> full_pattern(const Problem& problem, View<const RowSoftmax, 2> softmax) {
  validate(problem);
  std::int64_t longest = 0;
  for (const Sequence& sequence : problem.sequences) longest = std::max(longest, sequence.length);
  std::vector<std::int64_t> rows(problem.q.shape[0]);
  std::vector<std::int32_t> heads(problem.q.shape[1]);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < heads.size(); ++i) heads[i] = static_cast<std::int32_t>(i);
  return weights(problem, softmax, rows, heads, 0, longest);
}

}  // namespace regard
