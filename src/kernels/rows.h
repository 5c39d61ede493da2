#pragma once
// How the row kernels take their arguments and spread their rows.

#include <algorithm>
#include <cstdint>

#include "parallel/parallel_for.h"
#include "tensor/error.h"
#include "tensor/view.h"

namespace regard {

// A piece of work that is worth handing to another thread, in elements touched (some 10 microseconds).
inline constexpr std::int64_t kElementsPerTask = 32768;

// body(begin, end) for pieces that cover [0, rows), each of about kElementsPerTask elements. Work of less than two
// pieces is done on the calling thread without any cost of threads: a decode step is such work. Rows are independent,
// so where the cuts are does not matter to any bit.
template <typename Body>
void for_row_pieces(std::int64_t rows, std::int64_t elements_per_row, const Body& body) {
  const std::int64_t rows_per_piece =
      std::max<std::int64_t>(1, kElementsPerTask / std::max<std::int64_t>(1, elements_per_row));
  const std::int64_t pieces = (rows + rows_per_piece - 1) / rows_per_piece;
  if (pieces <= 1) {
    if (rows > 0) body(std::int64_t{0}, rows);
    return;
  }
  parallel_for(pieces, [&](std::int64_t piece, int) {
    body(piece * rows_per_piece, std::min(rows, (piece + 1) * rows_per_piece));
  });
}

// Error{bad_input} unless the channels of every row lie side by side.
template <typename T>
void require_dense_rows(const char* operation, const char* name, const View<T, 2>& x) {
  if (x.shape[1] > 1 && x.stride[1] != 1) {
    throw Error(ErrorCode::bad_input, fmt::format("{}: channels of {} are {} apart", operation, name, x.stride[1]),
                "lay the channels of a row side by side");
  }
}

// Error{bad_input} unless both are [R, C] with dense rows.
template <typename A, typename B>
void require_same_rows(const char* operation, const View<A, 2>& x, const View<B, 2>& y) {
  if (x.shape != y.shape) {
    throw Error(ErrorCode::bad_input, fmt::format("{}: shapes [{}, {}] and [{}, {}] differ", operation, x.shape[0],
                                                  x.shape[1], y.shape[0], y.shape[1]));
  }
  require_dense_rows(operation, "the input", x);
  require_dense_rows(operation, "the output", y);
}

}  // namespace regard
