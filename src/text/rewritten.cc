#include "text/rewritten.h"

#include <fmt/core.h>

#include <algorithm>

#include "tensor/error.h"

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

namespace {

// A compatibility form is at most eleven times as long as what it stands for; more than this is no honest file's work.
constexpr std::size_t kMostGrowth = 64, kAlwaysAllowed = std::size_t{1} << 16;

}  // namespace

void Changes::replace(std::size_t begin, std::size_t end, std::string_view with) {
  if (!result_) result_.emplace();
  result_->keep(text_.substr(kept_, begin - kept_));
  result_->replace(static_cast<std::int64_t>(end - begin), with);
  kept_ = end;
  if (result_->text().size() > kMostGrowth * text_.size() + kAlwaysAllowed)
    throw Error(
        ErrorCode::bad_input,
        fmt::format("normalising a text of {} bytes makes it more than {} times as long", text_.size(), kMostGrowth),
        "the tokenizer's file replaces characters by very long texts; it is damaged or not honest");
}

std::optional<Rewritten> Changes::finish() {
  if (result_) result_->keep(text_.substr(kept_));
  return std::move(result_);
}

}  // namespace regard
