#pragma once
// AdamW (Loshchilov and Hutter 2019, algorithm 2) with clipping by the norm of the whole gradient, and a schedule of a
// linear rise and a cosine fall.

#include <cstdint>
#include <span>
#include <string>

#include "tensor/buffer.h"
#include "training/parameters.h"

namespace regard {

struct AdamW {
  float rate = 1e-3f;  // at the top of the schedule
  float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f;
  float weight_decay = 0.1f;  // of matrices; vectors (norms, biases) are left alone
  float clip = 1;             // the gradient's norm is at most this; 0: not clipped
  std::int64_t rise = 100;    // steps of the rise
  std::int64_t steps = 1000;  // of the whole schedule
  float floor = 0.1f;         // what is left of the rate at its end

  // The rate of step s = 0, 1...
  float rate_at(std::int64_t step) const;
  // All of it, on one line.
  std::string text() const;
};

// sqrt(sum x^2) in double: blocks of 4096 numbers, each ascending, added in order; no bit depends on threads.
double norm(std::span<const float> values);

// What AdamW remembers; as long as the parameters.
struct Moments {
  explicit Moments(std::int64_t size) : first(size), second(size) {}
  Buffer<float> first, second;
};

// One step; `step` counts from 0. Gives the gradient's norm before it was clipped. A gradient that is not finite
// changes nothing: Error{bad_input}.
double step(const AdamW& how, std::int64_t step, const Parameters& gradients, Moments& moments, Parameters& parameters);

}  // namespace regard
