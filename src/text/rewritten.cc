#include "text/rewritten.h"

#include <algorithm>

namespace regard {

void Rewritten::keep(std::string_view text) {
  text_ += text;
  source_ += static_cast<std::int64_t>(text.size());
}

void Rewritten::replace(std::int64_t source_bytes, std::string_view with) {
  const auto begin = static_cast<std::int64_t>(text_.size());
  text_ += with;
  edits_.push_back({begin, static_cast<std::int64_t>(text_.size()), source_, source_ + source_bytes});
  source_ += source_bytes;
}

Rewritten::Range Rewritten::source(std::int64_t begin, std::int64_t end) const {
  // The last edit that begins at or before `at`; what follows it is shifted by as much as it ends apart.
  const auto before = [&](std::int64_t at) {
    return std::upper_bound(edits_.begin(), edits_.end(), at,
                            [](std::int64_t value, const Edit& edit) { return value < edit.begin; });
  };
  Range range{begin, end};
  if (auto edit = before(begin); edit != edits_.begin()) {
    --edit;
    range.begin = begin < edit->end ? edit->source_begin : edit->source_end + (begin - edit->end);
  }
  if (begin == end) return {range.begin, range.begin};
  if (auto edit = before(end - 1); edit != edits_.begin()) {
    --edit;
    range.end = end <= edit->end ? edit->source_end : edit->source_end + (end - edit->end);
  }
  return range;
}

}  // namespace regard
