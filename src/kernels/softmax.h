#pragma once
// Softmax and its normaliser over one row, in the canonical channel order.

#include <cstdint>

namespace regard {

// log sum_i exp(x[i]); -inf for n = 0 or all -inf. +inf gives +inf, NaN gives NaN.
float log_sum_exp(const float* x, std::int64_t n);
// p[i] = exp(x[i] - max) / sum; all zeros when every x is -inf, all NaN when one is NaN or +inf. x and p may be the
// same memory.
void softmax(const float* x, float* p, std::int64_t n);
// lp[i] = (x[i] - max) - log sum, which is closer to the truth than x[i] - log_sum_exp(x) when the maximum is large;
// all -inf when every x is -inf. x and lp may be the same memory.
void log_softmax(const float* x, float* lp, std::int64_t n);

}  // namespace regard
