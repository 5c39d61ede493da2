#pragma once
// How far one unit of attention weight moves the residual: ||v_j W_O^h|| per position and head, the norm of the
// transformed value of Kobayashi et al. 2020 (section 3; f(x) = (x W_V + b_V) W_O^h). A weight times it is the
// norm-weighted weight, a column sum times it the norm-weighted column sum.
//
// ||v W||^2 = v (W W^T) v^T: the [E, E] matrix of a head is made once, so a position costs E^2 and not E C products.
// All sums in float64, rounded once at the end.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "tensor/view.h"

namespace regard {

class ValueNorms {
 public:
  explicit ValueNorms(const Model& model) : model_(model) {}

  // v: [rows, G, E], the values of `layer`. out[h, slot[r]] for each of `heads` (out: [heads, slots]); rows with slot
  // -1 are left out.
  void add(std::int64_t layer, std::span<const std::int64_t> heads, View<const float, 3> v,
           std::span<const std::int32_t> slot, View<float, 2> out);

 private:
  const std::vector<double>& products(std::int64_t layer, std::int64_t head);

  const Model& model_;
  std::vector<std::vector<double>> products_;  // [L * H] of [E, E], made when first needed
};

}  // namespace regard
