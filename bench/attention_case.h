#pragma once
// The problem that attention is timed on.

#include <string>
#include <vector>

#include <fmt/core.h>

#include "attention/problem.h"
#include "case_data.h"
#include "tensor/buffer.h"

namespace regard::bench {

// T queries at the end of one sequence of S keys, everything in place in f32.
struct AttentionCase {
  std::int64_t H, G, T, S, D;
  bool causal;
  Tensor<float, 3> q, k, v, out;  // [T, H, D], [S, G, D], [S, G, D], [T, H, D]
  const std::byte* k_page;
  const std::byte* v_page;
  Sequence sequence;
  std::vector<QueryRow> rows;
  Problem problem;

  AttentionCase(std::int64_t heads, std::int64_t kv_heads, std::int64_t queries, std::int64_t keys,
                std::int64_t channels, bool is_causal)
      : H(heads),
        G(kv_heads),
        T(queries),
        S(keys),
        D(channels),
        causal(is_causal),
        q({T, H, D}),
        k({S, G, D}),
        v({S, G, D}),
        out({T, H, D}) {
    Noise noise(11);
    noise.fill(q.data(), q.size());
    noise.fill(k.data(), k.size());
    noise.fill(v.data(), v.size());
    k_page = reinterpret_cast<const std::byte*>(k.data());
    v_page = reinterpret_cast<const std::byte*>(v.data());
    const std::int64_t f = sizeof(float);
    sequence.length = S;
    sequence.k = {DType::f32, &k_page, S, G * D * f, D * f, f};
    sequence.v = {DType::f32, &v_page, S, G * D * f, D * f, f};
    rows = query_rows(1, T, S);
    problem.q = q.view();
    problem.rows = rows;
    problem.sequences = {&sequence, 1};
    problem.kv_heads = G;
    problem.value_channels = D;
    problem.mask.causal = causal;
  }
  AttentionCase(const AttentionCase&) = delete;
  AttentionCase& operator=(const AttentionCase&) = delete;

  // 1e9 operations: a product and a sum for every channel of every visible pair, for scores and for values.
  double operations() const {
    const double pairs = causal ? static_cast<double>(T) * static_cast<double>(2 * S - T + 1) / 2
                                : static_cast<double>(T) * static_cast<double>(S);
    return 4.0 * static_cast<double>(H) * static_cast<double>(D) * pairs / 1e9;
  }
  std::string shape() const {
    return fmt::format("T={} S={} H={} G={} D={}{} f32", T, S, H, G, D, causal ? " causal" : "");
  }
};

}  // namespace regard::bench
