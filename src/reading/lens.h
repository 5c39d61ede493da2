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

// resid: [layers + 1][row][C], as a Reading with `resid` holds it. Gives [layers + 1][row] the `top` best tokens, best
// first, the lower id of equals. Logits of few rows live at a time.
std::vector<std::vector<std::vector<Guess>>> logit_lens(const Model& model, View<const float, 3> resid,
                                                        std::int64_t top);

}  // namespace regard
