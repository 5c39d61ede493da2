#pragma once
// One value describes every attention: prefill, decode, packed, paged, laid over, cross, grouped, bidirectional.
//
//   score[r, h, j] = cap(scale * sum_d q[r, h, d] k[j, h / (H / G), d]) + bias + edits       visible j, else -inf
//   weight         = exp(score) / (sum over visible j of exp(score) + exp(sink[h]))
//   out[r, h, e]   = sum_j weight[r, h, j] v[j, h / (H / G), e]
//
// The mask is a predicate, never a matrix. Letters: DESIGN section 2.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace regard {

// Where the key (or value) rows of one sequence are. Row j starts at pages[j / page_rows] + (j % page_rows) *
// row_stride; in it, element (g, d) is at g * head_stride + d * inner_stride. All strides in bytes, any value (64-bit).
//   in place:  one page, page_rows = length
//   paged:     as it says
//   laid over: page_rows = 1, a pointer per row
struct Rows {
  DType dtype = DType::f32;  // f32, f16, bf16
  const std::byte* const* pages = nullptr;
  std::int64_t page_rows = 1;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t inner_stride = 0;

  const std::byte* row(std::int64_t j) const { return pages[j / page_rows] + (j % page_rows) * row_stride; }
};

// What one sequence's queries can read.
struct Sequence {
  std::int64_t length = 0;  // S of this sequence; rows beyond it are never touched
  Rows k, v;                // [length, G, D], [length, G, E]
  // Optional per-key data of this sequence, [length] each; empty = all visible / one segment.
  std::span<const std::uint8_t> visible;  // padding mask: 0 = this key is not there
  std::span<const std::int32_t> segment;  // packed segments: a query row reads keys of its own segment only
};

// One query row: which sequence it reads and where it stands in it. With causal masks it sees keys j <= position
// ("bottom-right" is position = S - T + t, "top-left" is position = t: see positions()); position may be negative (sees
// nothing) or beyond the length.
struct QueryRow {
  std::int32_t sequence = 0;
  std::int32_t segment = 0;  // matters only where the sequence has segments
  std::int64_t position = 0;
};

// A change of single scores, before the softmax: score += add for keys [key_begin, key_end) read by (row, head).
// add = -inf blocks the edge (the row renormalises over what is left); ln X scales its weight by X.
// Edges are sorted by (row, head, key_begin) and do not overlap; a blocked edge stays blocked whatever the bias says.
struct EdgeEdit {
  std::int64_t row = 0;
  std::int32_t head = 0;
  std::int64_t key_begin = 0, key_end = 0;
  float add = -std::numeric_limits<float>::infinity();
};

struct Mask {
  bool causal = false;             // key j visible only if j <= position
  std::int64_t window_left = -1;   // W > 0: only keys j > position - W (so min(i + 1, W) with causal, self included)
  std::int64_t window_right = -1;  // W >= 0: only keys j <= position + W
  std::span<const EdgeEdit> edges;
  // Added to the score after the softcap: [rows, H, S], stride 0 where it is broadcast; data = null: none. -inf masks.
  // The key axis must reach the longest sequence.
  View<const float, 3> bias;
  // The bias's first axis is the row's position instead of its number, from 0 on, of any extent: a bias that depends on
  // key - position alone is then a table of T + S - 1 numbers per head, seen with strides -1 and 1 (never T x S).
  bool bias_by_position = false;
};

// Dropout of the weights, for training: after the softmax each is 0 with this probability, else divided by 1 -
// probability. Which ones: a hash of (seed, index of the sequence, query head, position of the row, key), the same in
// forward and backward (attention/dropout.h). Softmax and log-sum-exp know nothing of it, and readers get the weights
// before it. A dropped edge adds nothing to the output, not even 0 x NaN.
struct Dropout {
  float probability = 0;  // 0: none; up to and with 1, which leaves outputs of 0
  std::uint64_t seed = 0;
};

struct Problem {
  View<const float, 3> q;          // [rows, H, D], any strides
  std::span<const QueryRow> rows;  // [rows]
  std::span<const Sequence> sequences;
  std::int64_t kv_heads = 1;        // G
  std::int64_t value_channels = 0;  // E
  Mask mask;
  std::optional<float> scale;    // default 1 / sqrt(D); 0 and negative numbers are values
  float softcap = 0;             // > 0: cap * tanh(score / cap)
  std::span<const float> sinks;  // [H] or empty
  Dropout dropout;
};

// What a row's softmax was made with: weight = exp(score - max) / sum, log-sum-exp = max + log(sum). `sum` includes the
// sink. A row that saw nothing has max = -inf and sum = 0 (with a sink: max = sink, sum = 1).
struct RowSoftmax {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

enum class CausalAlignment { bottom_right, top_left };
// The rows of B sequences of T queries each over S keys: row b * T + t.
std::vector<QueryRow> query_rows(std::int64_t batch, std::int64_t t, std::int64_t s,
                                 CausalAlignment alignment = CausalAlignment::bottom_right);

// Checks everything once, so that the kernels run without checks; Error{bad_input} names the field.
void validate(const Problem& problem);

}  // namespace regard
