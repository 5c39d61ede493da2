#pragma once
// What the model would say next if it stopped after a layer: the logit lens (nostalgebraist 2020), softmax(W_U
// norm(h_l)), with the final norm. At the last layer it is the model's own answer, bit for bit (law 6).

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "tensor/view.h"

namespace regard {

struct Guess {
  std::int32_t id = 0;
  float logit = 0;
  float logprob = 0;
};

struct LensRow {
  std::vector<Guess> top;  // the best tokens, best first, the lower id of equals; not a number is the lowest
  Guess final;             // the same for the token that is best at the end
  std::int64_t rank = 0;   // of that token here: how many are better; 0 is the first choice
};

// resid: [layers + 1][row][C], as a Reading with `resid` holds it. Gives [layers + 1][row], with the `top` best tokens
// of each. Logits of few rows live at a time.
std::vector<std::vector<LensRow>> logit_lens(const Model& model, View<const float, 3> resid, std::int64_t top);

// The best token of each row, resid: [row][C] after the last block.
std::vector<std::int32_t> first_choices(const Model& model, View<const float, 2> resid);

// Beside the result.
std::int64_t lens_bytes(const ModelConfig& config, std::int64_t rows);

}  // namespace regard
