#pragma once
// Rows that read by other weights: for some (row, head) of a problem the weights are made from other queries and other
// keys, while the values stay the problem's own. A pattern frozen from another run is that run's queries and keys; a
// uniform one is queries of zero; a permuted one is the same keys in another order. So a changed pattern is never
// stored: it is made by the same kernel, tile by tile, from vectors of which there are as many as rows.

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
  std::int64_t* changed = nullptr;  // where forward() adds the rows whose output is not what it was
};

// After forward(problem, out, softmax): puts the substituted lanes in place. No (row, head) may be substituted twice.
// Error{unsupported} when the problem has a bias.
void forward(const Problem& problem, std::span<const Substitute> substitutes, View<float, 3> out,
             View<RowSoftmax, 2> softmax);

// As read(problem, softmax, readers), with the weights that were used.
void read(const Problem& problem, std::span<const Substitute> substitutes, View<const RowSoftmax, 2> softmax,
          std::span<Reader* const> readers);

}  // namespace regard
