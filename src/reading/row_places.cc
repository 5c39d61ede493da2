#include "reading/row_places.h"

#include <algorithm>

#include "tensor/error.h"

namespace regard {

RowPlaces::RowPlaces(const ReadingRequest& request, std::int64_t tokens, std::int64_t heads)
    : row_index_(static_cast<std::size_t>(tokens), -1), passed_(static_cast<std::size_t>(tokens), 0) {
  for (std::size_t i = 0; i < request.rows.size(); ++i) row_index_[request.rows[i]] = static_cast<std::int32_t>(i);
  for (Placement* placement : {&all_, &chosen_}) {
    placement->sequence = request.sequence;
    placement->head.assign(static_cast<std::size_t>(heads), -1);
    for (std::size_t h = 0; h < request.heads.size(); ++h)
      placement->head[request.heads[h]] = static_cast<std::int32_t>(h);
  }
}

void RowPlaces::pass(std::span<const Row> rows) {
  all_.row.clear();
  chosen_.row.clear();
  for (const Row& row : rows) {
    const bool ours = row.sequence == all_.sequence;
    if (ours && row.position >= std::ssize(passed_))
      throw Error(ErrorCode::usage, fmt::format("row {} passed, but the reading was planned for a text of {} tokens",
                                                row.position, passed_.size()));
    all_.row.push_back(ours ? static_cast<std::int32_t>(row.position) : -1);
    chosen_.row.push_back(ours ? row_index_[row.position] : -1);
    if (ours) passed_[row.position] = 1;
  }
}

bool RowPlaces::any() const {
  return std::any_of(all_.row.begin(), all_.row.end(), [](std::int32_t slot) { return slot >= 0; });
}

std::int64_t RowPlaces::passed_below(std::int64_t end) const {
  return std::count(passed_.begin(), passed_.begin() + end, 1);
}

void RowPlaces::check_chosen(const ReadingRequest& request) const {
  for (const std::int64_t row : request.rows)
    if (!passed(row))
      throw Error(ErrorCode::usage, fmt::format("row {} was to be read, but never passed through the model", row),
                  "feed the whole text while the reading is attached");
}

}  // namespace regard
