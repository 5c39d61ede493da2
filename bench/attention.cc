#include "attention.h"

#include <cmath>

#include <fmt/core.h>

#include "attention/forward.h"
#include "attention/read.h"
#include "case_data.h"
#include "reading/exact_sums.h"
#include "reading/row_readers.h"
#include "reading/top_reads.h"

namespace regard::bench {
namespace {

// T queries at the end of one sequence of S keys, everything in place in f32.
struct Case {
  std::int64_t H, G, T, S, D;
  bool causal;
  Tensor<float, 3> q, k, v, out;  // [T, H, D], [S, G, D], [S, G, D], [T, H, D]
  const std::byte* k_page;
  const std::byte* v_page;
  Sequence sequence;
  std::vector<QueryRow> rows;
  Problem problem;

  Case(std::int64_t heads, std::int64_t kv_heads, std::int64_t queries, std::int64_t keys, std::int64_t channels,
       bool is_causal)
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
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  // 1e9 operations: a product and a sum for every channel of every visible pair, for scores and for values.
  double operations() const {
    const double pairs = causal ? static_cast<double>(T) * static_cast<double>(2 * S - T + 1) / 2
                                : static_cast<double>(T) * static_cast<double>(S);
    return 4.0 * static_cast<double>(H) * static_cast<double>(D) * pairs / 1e9;
  }
  // Largest |out - float64| over some rows and heads.
  double error() const {
    double worst = 0;
    for (std::int64_t t = T - 1; t >= 0; t -= 1 + T / 4)
      for (std::int64_t h = 0; h < H; h += 1 + H / 3) {
        const std::int64_t g = h / (H / G), end = causal ? S - T + t + 1 : S;
        std::vector<double> p(static_cast<std::size_t>(end)), o(static_cast<std::size_t>(D), 0.0);
        double max = -INFINITY, sum = 0;
        for (std::int64_t j = 0; j < end; ++j) {
          double dot = 0;
          for (std::int64_t d = 0; d < D; ++d) dot += static_cast<double>(q(t, h, d)) * k(j, g, d);
          p[j] = dot / std::sqrt(static_cast<double>(D));
          max = std::max(max, p[j]);
        }
        for (double& s : p) sum += s = std::exp(s - max);
        for (std::int64_t j = 0; j < end; ++j)
          for (std::int64_t d = 0; d < D; ++d) o[d] += p[j] / sum * v(j, g, d);
        for (std::int64_t d = 0; d < D; ++d) worst = std::max(worst, std::fabs(o[d] - out(t, h, d)));
      }
    return worst;
  }
  std::string shape() const {
    return fmt::format("T={} S={} H={} G={} D={}{} f32", T, S, H, G, D, causal ? " causal" : "");
  }
};

void forward_line(std::int64_t D, bool causal, const std::function<void(const Line&)>& each) {
  Case c(4, 4, 4096, 4096, D, causal);
  const Measured m = measure([&] { forward(c.problem, c.out.view()); }, c.operations(), Yardstick::fma_peak);
  each({"attention forward", c.shape(), "GFLOP/s", m.figure, m.peak, m.fraction, c.error()});
}

void decode_line(const std::function<void(const Line&)>& each) {
  Case c(32, 8, 1, 16384, 128, true);
  const double amount = static_cast<double>(c.k.size() + c.v.size()) * sizeof(float) / 1e9;  // unique bytes
  const Measured m = measure([&] { forward(c.problem, c.out.view()); }, amount, Yardstick::read_bandwidth);
  each({"attention decode", c.shape(), "GB/s", m.figure, m.peak, m.fraction, c.error()});
}

// Column sums, entropy and the 8 strongest reads of every row, beside the forward pass of the same problem.
void reading_line(std::int64_t D, const std::function<void(const Line&)>& each) {
  Case c(4, 4, 4096, 4096, D, true);
  Tensor<RowSoftmax, 2> softmax({c.T, c.H});
  const Placement all = Placement::all(c.problem);
  Tensor<std::int64_t, 2> columns({c.H, c.S});
  Tensor<float, 2> entropies({c.H, c.T});
  Tensor<float, 3> top({c.H, c.T, 8});
  Tensor<std::int32_t, 3> top_key({c.H, c.T, 8});
  ColumnSumReader column_sums;
  EntropyReader entropy;
  TopReader strongest;
  Reader* const readers[] = {&column_sums, &entropy, &strongest};
  forward(c.problem, c.out.view(), softmax.view());
  const double x = ratio(
      [&] {
        column_sums.aim(all, columns.view());
        entropy.aim(all, entropies.view());
        strongest.aim(all, top.view(), top_key.view());
        read(c.problem, softmax.view(), readers);
      },
      [&] { forward(c.problem, c.out.view(), softmax.view()); });
  each({"attention reading", c.shape() + ": column sums, entropy, top 8", "x forward", x});
}

}  // namespace

void attention_lines(const std::string& filter, const std::function<void(const Line&)>& each) {
  const auto wanted = [&](std::string_view name) { return name.find(filter) != std::string_view::npos; };
  if (wanted("attention forward"))
    for (std::int64_t D : {64, 128})
      for (bool causal : {false, true}) forward_line(D, causal, each);
  if (wanted("attention decode")) decode_line(each);
  if (wanted("attention reading"))
    for (std::int64_t D : {64, 128}) reading_line(D, each);
}

}  // namespace regard::bench
