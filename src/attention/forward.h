#pragma once

#include "attention/problem.h"

namespace regard {

// out: [rows, H, E], any strides; softmax: [rows, H] (may have null data); log_sum_exp: [rows, H] (may have null data),
// -inf for a row that saw nothing. Rows that saw nothing give 0. Same bits for any thread count, any split of the rows
// over calls, any paging, any target (the canonical order: docs/attention-kernel.md).
void forward(const Problem& problem, View<float, 3> out, View<RowSoftmax, 2> softmax = {},
             View<float, 2> log_sum_exp = {});

}  // namespace regard
