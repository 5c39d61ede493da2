#pragma once
// What a training came to.

#include <cstdint>
#include <string>
#include <vector>

#include "report/output.h"
#include "report/page.h"

namespace regard {

// Held-out sentences of one kind and language, and how many were answered rightly.
struct Answered {
  std::string kind, language;
  std::int64_t asked = 0, right = 0;
};

struct TrainResult {
  std::string path;  // the folder
  std::vector<float> losses;
  std::int64_t parameters = 0;
  std::vector<Answered> answered;
};

void write_json(Output& out, const TrainResult& result);
Page train_page(const TrainResult& result, int columns);

}  // namespace regard
