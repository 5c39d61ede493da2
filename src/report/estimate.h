#pragma once
// How long a reading will take, told before it starts.

#include "model/model.h"
#include "reading/request.h"

namespace regard {

// Counts the multiply-adds of the model and of attention, and times a small product with the model's own weights (a few
// milliseconds) to learn what this machine does just now. Good to about a factor of two.
double estimated_seconds(const Model& model, const ReadingRequest& request, std::int64_t tokens);

}  // namespace regard
