#pragma once
// What the steps about a real model share.

#include <string>
#include <vector>

#include "lesson/lesson.h"
#include "tensor/buffer.h"

namespace regard {

// What those steps say without one.
LessonText no_model_here();

// The weights of the last row, [layers, heads, keys]; no layers: all.
Tensor<float, 4> last_row_weights(const LessonModel& real, const std::vector<std::int64_t>& layers);

// The token at a position, as a person sees it.
std::string token_text(const LessonModel& real, std::int64_t position);
std::string whole_text(const LessonModel& real);

}  // namespace regard
