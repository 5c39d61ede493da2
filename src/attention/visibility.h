#pragma once
// The mask as ranges: which keys a query row may see at most, found without ever writing a matrix.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attention/problem.h"

namespace regard {

// Keys [begin, end); begin >= end: none.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin >= end; }
};

// What one query row may see: every visible key is in `keys`. `scattered`: only those of them that carry the row's
// segment (where a segment is one run of keys, which is usual, the range alone says it). Keys that Sequence::visible
// hides still have to be left out inside the range.
struct RowVisibility {
  KeyRange keys;
  bool scattered = false;
};

// Built once per call in O(keys + rows).
class Visibility {
 public:
  explicit Visibility(const Problem& problem);
  RowVisibility of(const QueryRow& row) const;

 private:
  struct Run {
    KeyRange keys;
    std::int64_t count = 0;
  };
  struct PerSequence {
    KeyRange visible;  // from the first to the last key that is there
    std::unordered_map<std::int32_t, Run> segments;
  };
  const Problem& problem_;
  std::vector<PerSequence> sequences_;
};

}  // namespace regard
