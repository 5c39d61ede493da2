#include "attention/problem.h"

#include <cmath>

#include "tensor/error.h"

namespace regard {
namespace {

// Positions, windows and lengths stay far from the ends of 64 bits, so that sums of two of them cannot overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 60;

[[noreturn]] void refuse(std::string message, std::string hint = {}) {
  throw Error(ErrorCode::bad_input, "attention: " + std::move(message), std::move(hint));
}

void check_rows(const Rows& rows, std::int64_t length, std::size_t sequence, std::string_view name) {
  if (rows.dtype != DType::f32 && rows.dtype != DType::f16 && rows.dtype != DType::bf16) {
    refuse(fmt::format("{} of sequence {} are {}", name, sequence, info(rows.dtype).name), "use f32, f16 or bf16");
  }
  if (length == 0) return;
  if (rows.page_rows < 1)
    refuse(fmt::format("{} of sequence {} have {} rows in a page", name, sequence, rows.page_rows));
  if (rows.pages == nullptr) refuse(fmt::format("{} of sequence {} have no pages", name, sequence));
  for (std::int64_t page = 0; page <= (length - 1) / rows.page_rows; ++page) {
    if (rows.pages[page] == nullptr) refuse(fmt::format("page {} of {} of sequence {} is null", page, name, sequence));
  }
}

void check_sequence(const Sequence& sequence, std::size_t index) {
  if (sequence.length < 0 || sequence.length > kFar) {
    refuse(fmt::format("sequence {} has length {}", index, sequence.length));
  }
  check_rows(sequence.k, sequence.length, index, "keys");
  check_rows(sequence.v, sequence.length, index, "values");
  const auto length = static_cast<std::size_t>(sequence.length);
  if (!sequence.visible.empty() && sequence.visible.size() != length) {
    refuse(fmt::format("sequence {} has {} keys but visible has {}", index, length, sequence.visible.size()));
  }
  if (!sequence.segment.empty() && sequence.segment.size() != length) {
    refuse(fmt::format("sequence {} has {} keys but segment has {}", index, length, sequence.segment.size()));
  }
}

void check_edges(const Problem& problem) {
  const EdgeEdit* before = nullptr;
  for (const EdgeEdit& edge : problem.mask.edges) {
    const std::string name =
        fmt::format("edge (row {}, head {}, keys {}..{})", edge.row, edge.head, edge.key_begin, edge.key_end);
    if (edge.row < 0 || edge.row >= problem.q.shape[0]) refuse(name + " names a row that is not there");
    if (edge.head < 0 || edge.head >= problem.q.shape[1]) refuse(name + " names a head that is not there");
    const std::int64_t length = problem.sequences[problem.rows[edge.row].sequence].length;
    if (edge.key_begin < 0 || edge.key_begin >= edge.key_end || edge.key_end > length) {
      refuse(name + fmt::format(" is not a range of the sequence's {} keys", length));
    }
    if (!(edge.add < std::numeric_limits<float>::infinity())) refuse(name + fmt::format(" adds {}", edge.add));
    if (before != nullptr) {
      const bool same_lane = before->row == edge.row && before->head == edge.head;
      const bool later_lane = before->row < edge.row || (before->row == edge.row && before->head < edge.head);
      if (!later_lane && !(same_lane && before->key_end <= edge.key_begin)) {
        refuse(name + " is out of order or overlaps the one before", "sort edges by (row, head, key_begin)");
      }
    }
    before = &edge;
  }
}

void check_bias(const Problem& problem, std::int64_t longest) {
  const View<const float, 3>& bias = problem.mask.bias;
  if (bias.data == nullptr) return;
  const std::int64_t wanted[3] = {problem.q.shape[0], problem.q.shape[1], longest};
  const char* axis_name[3] = {"row", "head", "key"};
  for (int axis = 0; axis < 3; ++axis) {
    // A broadcast axis (stride 0) may have any extent; the key axis may be longer than the sequences.
    if (axis == 0 && problem.mask.bias_by_position) {
      for (std::size_t r = 0; r < problem.rows.size(); ++r)
        if (problem.rows[r].position < 0 || problem.rows[r].position >= bias.shape[0])
          refuse(fmt::format("row {} is at position {}, the bias goes from 0 to {}", r, problem.rows[r].position,
                             bias.shape[0] - 1));
      continue;
    }
    if (bias.stride[axis] == 0 && bias.shape[axis] >= std::min<std::int64_t>(1, wanted[axis])) continue;
    if (bias.shape[axis] == wanted[axis] || (axis == 2 && bias.shape[axis] > wanted[axis])) continue;
    refuse(
        fmt::format("the bias has {} on its {} axis, the problem {}", bias.shape[axis], axis_name[axis], wanted[axis]),
        "a broadcast axis has stride 0");
  }
}

}  // namespace

std::vector<QueryRow> query_rows(std::int64_t batch, std::int64_t t, std::int64_t s, CausalAlignment alignment) {
  if (batch < 0 || t < 0 || s < 0) refuse(fmt::format("{} sequences of {} queries over {} keys", batch, t, s));
  const std::int64_t first = alignment == CausalAlignment::bottom_right ? s - t : 0;
  std::vector<QueryRow> rows;
  rows.reserve(static_cast<std::size_t>(batch * t));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < t; ++i) rows.push_back({static_cast<std::int32_t>(b), 0, first + i});
  }
  return rows;
}

void validate(const Problem& problem) {
  const auto& [rows, heads, channels] = problem.q.shape;
  if (rows < 0 || heads < 0) refuse(fmt::format("q has shape [{}, {}, {}]", rows, heads, channels));
  if (channels < 1 || channels > 512) refuse(fmt::format("q has {} channels", channels), "1 to 512 are possible");
  if (problem.value_channels < 1 || problem.value_channels > 512) {
    refuse(fmt::format("value_channels is {}", problem.value_channels), "1 to 512 are possible");
  }
  if (problem.q.data == nullptr && rows * heads > 0) refuse("q has no data");
  if (problem.kv_heads < 1) refuse(fmt::format("kv_heads is {}", problem.kv_heads));
  if (heads % problem.kv_heads != 0) {
    refuse(fmt::format("{} query heads do not share {} key/value heads evenly", heads, problem.kv_heads));
  }
  if (heads > (1 << 20)) refuse(fmt::format("q has {} heads", heads));
  if (std::ssize(problem.rows) != rows) refuse(fmt::format("q has {} rows but rows has {}", rows, problem.rows.size()));

  std::int64_t longest = 0;
  for (std::size_t i = 0; i < problem.sequences.size(); ++i) {
    check_sequence(problem.sequences[i], i);
    longest = std::max(longest, problem.sequences[i].length);
  }
  for (std::size_t i = 0; i < problem.rows.size(); ++i) {
    const QueryRow& row = problem.rows[i];
    if (row.sequence < 0 || row.sequence >= std::ssize(problem.sequences)) {
      refuse(fmt::format("row {} reads sequence {} of {}", i, row.sequence, problem.sequences.size()));
    }
    if (row.position < -kFar || row.position > kFar) refuse(fmt::format("row {} has position {}", i, row.position));
  }

  const Mask& mask = problem.mask;
  if (mask.window_left != -1 && (mask.window_left < 1 || mask.window_left > kFar)) {
    refuse(fmt::format("window_left is {}", mask.window_left), "1 or more keys, self included; -1 for no window");
  }
  if (mask.window_right != -1 && (mask.window_right < 0 || mask.window_right > kFar)) {
    refuse(fmt::format("window_right is {}", mask.window_right), "0 or more keys; -1 for no window");
  }
  check_edges(problem);
  check_bias(problem, longest);
  if (problem.scale && !std::isfinite(*problem.scale)) refuse(fmt::format("scale is {}", *problem.scale));
  if (!(problem.softcap >= 0) || !std::isfinite(problem.softcap)) refuse(fmt::format("softcap is {}", problem.softcap));
  if (!(problem.dropout.probability >= 0 && problem.dropout.probability <= 1)) {
    refuse(fmt::format("the probability of dropout is {}", problem.dropout.probability), "0 to 1 are possible");
  }
  if (!problem.sinks.empty() && std::ssize(problem.sinks) != heads) {
    refuse(fmt::format("q has {} heads but sinks has {}", heads, problem.sinks.size()));
  }
}

}  // namespace regard
