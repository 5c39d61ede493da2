#include "attention.h"

#include <cmath>

#include "attention/forward.h"
#include "attention/read.h"
#include "attention_case.h"
#include "backward.h"
#include "reading/exact_sums.h"
#include "reading/row_readers.h"
#include "reading/top_reads.h"

namespace regard::bench {
namespace {

// Largest |out - float64| over some rows and heads.
double error_of(const AttentionCase& c) {
  const auto& [H, G, T, S, D, causal, q, k, v, out, k_page, v_page, sequence, rows, problem] = c;
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

void forward_line(std::int64_t D, bool causal, const std::function<void(const Line&)>& each) {
  AttentionCase c(4, 4, 4096, 4096, D, causal);
  const Measured m = measure([&] { forward(c.problem, c.out.view()); }, c.operations(), Yardstick::fma_peak);
  each({"attention forward", c.shape(), "GFLOP/s", m.figure, m.peak, m.fraction, error_of(c)});
}

void decode_line(const std::function<void(const Line&)>& each) {
  AttentionCase c(32, 8, 1, 16384, 128, true);
  const double amount = static_cast<double>(c.k.size() + c.v.size()) * sizeof(float) / 1e9;  // unique bytes
  const Measured m = measure([&] { forward(c.problem, c.out.view()); }, amount, Yardstick::read_bandwidth);
  each({"attention decode", c.shape(), "GB/s", m.figure, m.peak, m.fraction, error_of(c)});
}

// Column sums, entropy and the 8 strongest reads of every row, beside the forward pass of the same problem.
void reading_line(std::int64_t D, const std::function<void(const Line&)>& each) {
  AttentionCase c(4, 4, 4096, 4096, D, true);
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
  if (wanted("attention backward")) backward_lines(each);
  if (wanted("attention decode")) decode_line(each);
  if (wanted("attention reading"))
    for (std::int64_t D : {64, 128}) reading_line(D, each);
}

}  // namespace regard::bench
