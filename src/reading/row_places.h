#pragma once
// The rows of a text as they pass, whatever the chunks: where each pass's rows belong, and which ones have passed.

#include <cstdint>
#include <span>
#include <vector>

#include "model/tap.h"
#include "reading/placement.h"
#include "reading/request.h"

namespace regard {

class RowPlaces {
 public:
  // A resolved request, for a text of `tokens` tokens and a model of `heads` heads.
  RowPlaces(const ReadingRequest& request, std::int64_t tokens, std::int64_t heads);

  // Error{usage} for a row beyond the text.
  void pass(std::span<const Row> rows);
  bool any() const;  // of the rows that pass now, one is of this text

  // Of the pass: every row by position; the chosen rows by their index.
  const Placement& all() const { return all_; }
  const Placement& chosen() const { return chosen_; }
  bool passed(std::int64_t position) const { return passed_[static_cast<std::size_t>(position)]; }
  // How many of the positions below `end`.
  std::int64_t passed_below(std::int64_t end) const;
  // Error{usage} when a chosen row never passed (law 4).
  void check_chosen(const ReadingRequest& request) const;

 private:
  Placement all_, chosen_;
  std::vector<std::int32_t> row_index_;  // [tokens] index among the chosen rows, -1
  std::vector<std::uint8_t> passed_;     // [tokens]
};

}  // namespace regard
