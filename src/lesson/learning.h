#pragma once
// One step of gradient descent on a single head: the chain rule by hand, in the order in which a person goes back.

#include "lesson/exploration.h"

namespace regard {

// Of loss = |output of the first row - target|^2 / 2. Shapes as in SmallHead; key_scale must be 1.
struct HeadGradients {
  double loss = 0;
  SmallMatrix output;               // [1, E]
  SmallMatrix d_output;             // [1, E]  output - target
  SmallMatrix d_weights, d_scores;  // [1, S]  d_output · v_j;  p_j (d_weights_j - sum p d_weights)
  SmallMatrix d_q, d_k, d_v;        // [1, D], [S, D], [S, E]
  SmallMatrix d_wq, d_wk, d_wv;     // [C, D], [C, D], [C, E]
};

// Weights and output by the engine; what flows back from them in double.
HeadGradients gradients(const SmallHead& head, const SmallMatrix& target);
double half_squared_distance(const SmallMatrix& a, const SmallMatrix& b);
double loss_of(const SmallHead& head, const SmallMatrix& target);
// Each of the three matrices less rate times its gradient.
SmallHead stepped(const SmallHead& head, const HeadGradients& gradients, double rate);

}  // namespace regard
