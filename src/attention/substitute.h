#pragma once
// Rows that read by other weights: for some (row, head) of a problem the weights are made from other queries and other
// keys, while the values stay the problem's own. A pattern frozen from another run is that run's queries and keys; a
// uniform one is queries of zero; a permuted one is the same keys in another order. So a changed pattern is never
// stored: it is made by the same kernel, tile by tile, from vectors of which there are as many as rows.

#include <functional>
#include <span>
#include <vector>

#include "attention/problem.h"
#include "attention/read.h"

namespace regard {

// The rows of one key/value head, as rows that have a single head.
struct OneHeadRows {
  OneHeadRows() = default;
  OneHeadRows(const Rows& rows, std::int64_t head, std::int64_t length);

  std::vector<const std::byte*> pages;
  Rows rows;  // without its pages, so that this may be moved: see view()
  Rows view() const;
};

struct Substitute {
  std::int32_t head = 0;
  std::vector<std::int64_t> rows;   // of the problem, ascending, all of one sequence
  std::vector<float> q;             // [rows, D]
  OneHeadRows k;                    // [length of the sequence, 1, D]
  bool sink = true;                 // the head's learned sink takes part
  bool bias = true;                 // the problem's bias by position does, if it has one
  std::int64_t* changed = nullptr;  // where forward() adds the rows whose output is not what it was
};

// The rows of a problem as they are, in that form: what a changed pattern is compared with.
Substitute unchanged(const Problem& problem, std::int32_t head, std::vector<std::int64_t> rows);

// Hands substitutes on one at a time, so that few of them live at once.
using EachSubstitute = std::function<void(const std::function<void(const Substitute&)>& use)>;

// After forward(problem, out, softmax): puts the substituted lanes in place. No (row, head) may be substituted twice.
// Error{unsupported} when the problem has a bias that is not by position.
void forward(const Problem& problem, const EachSubstitute& each, View<float, 3> out, View<RowSoftmax, 2> softmax);

// As read(problem, softmax, readers), with the weights that were used.
void read(const Problem& problem, const EachSubstitute& each, View<const RowSoftmax, 2> softmax,
          std::span<Reader* const> readers);

// The exact weights of a substitute's rows, [rows, 1, longest S].
Tensor<float, 3> weights(const Problem& problem, const Substitute& substitute);

}  // namespace regard
