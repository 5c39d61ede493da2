#pragma once
// What attention shows of one row, in three ways, as shares of the positions.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace regard {

struct RowReadings {
  std::vector<double> attention, rollout, norm_weighted;  // [T], see intervention/why.h
};

RowReadings read_row(const Model& model, std::span<const std::int32_t> ids, std::int64_t row);

}  // namespace regard
