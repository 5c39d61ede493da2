#pragma once
// What attention shows of one row, or of the mean of all rows, in three ways, as shares of the positions.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/model.h"

namespace regard {

struct RowReadings {
  std::vector<double> attention, rollout, norm_weighted;  // [T], see intervention/why.h
};

// row: nothing: the mean of all rows, for what is measured of all. All three readings are linear in the row's weights
// before the last norm is taken, so that this costs what a row does.
RowReadings read_row(const Model& model, std::span<const std::int32_t> ids, std::optional<std::int64_t> row);

}  // namespace regard
