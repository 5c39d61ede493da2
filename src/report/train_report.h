#pragma once
// What a training came to.

#include <cstdint>
#include <optional>
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

// A part of a text: how many bytes it has, of how many the loss was measured, and its mean in nats.
struct TextPart {
  std::int64_t bytes = 0, measured = 0;
  double loss = 0;
};

struct TrainResult {
  std::string path;  // the folder
  std::vector<float> losses;
  std::int64_t parameters = 0;
  std::vector<Answered> answered;            // of a generated language
  std::optional<TextPart> learnt, held_out;  // of a text
};

void write_json(Output& out, const TrainResult& result);
Page train_page(const TrainResult& result, int columns);

}  // namespace regard
