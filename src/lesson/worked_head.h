#pragma once
// The head that is worked by hand. Tokens and W_Q, W_V are fractions, W_K is c times one, with c = √2 ln 2 and D = 2:
// then every scaled score is a fraction times ln 2, its exponential a power of 2, and every weight a fraction.

#include <cstdint>
#include <string>
#include <vector>

#include "lesson/exploration.h"
#include "lesson/number.h"
#include "lesson/rational.h"

namespace regard {

struct WorkedHead {
  RationalMatrix xq, xk, xv;  // [T, C], [S, C], [S, C]: what queries, keys and values are made from
  RationalMatrix wq, wk, wv;  // [C, 2], [C, 2] without c, [C, E]
  bool causal = false;
  std::vector<std::uint8_t> visible = {};  // [S] padding; empty: all
};

struct WorkedResult {
  Numbers q, k, v, scores, weights, outputs;  // the engine's, and exactly
  RationalMatrix exact_weights, exact_outputs;
};

// X = [1,0], [0,1], [1,1]; W_Q = I, W_K = c I, W_V = diag(2, 1).
RationalMatrix worked_tokens();
WorkedHead worked_head();
WorkedHead worked_head(const RationalMatrix& tokens);
double worked_key_scale();  // c
Slider key_scale_slider();  // c, in units of its own

// The engine's numbers beside the exact ones. Error{unsupported} where a score is no whole multiple of ln 2.
WorkedResult work(const WorkedHead& head);
// The same head for sliders.
SmallHead to_small_head(const WorkedHead& head);
SmallMatrix to_small_matrix(const RationalMatrix& matrix);

// What is called "x1", "x2" ... in the tables.
std::vector<std::string> numbered(const std::string& letter, std::int64_t count);

}  // namespace regard
