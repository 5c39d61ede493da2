#pragma once
// The Llama family's forward pass in plain loops, to be read beside the paper. In double it is the truth; in float it
// is the plain evaluation that law 1 measures against.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernels/dequantize.h"
#include "kernels/rotary.h"
#include "model/site.h"
#include "weights/checkpoint.h"

namespace regard::testing {

template <typename T>
class ReferenceModel {
 public:
  using Rows = std::vector<std::vector<T>>;  // [rows][channels]

  explicit ReferenceModel(const Checkpoint& checkpoint) : checkpoint_(checkpoint), c_(checkpoint.config) {}

  // Logits [T][V]. Every site's value is kept in `sites`, by full name.
  Rows logits(const std::vector<std::int32_t>& ids) {
    sites.clear();
    const auto keep = [&](Site site, std::int64_t layer, const Rows& value) { sites[full_name(site, layer)] = value; };
    Rows x;
    for (std::int32_t id : ids) x.push_back(matrix("token_embd.weight")[id]);
    for (const auto& [row, factor] : scaled_inputs)
      for (T& value : x[row]) value *= factor;
    for (std::int64_t l = 0; l < c_.layers; ++l) {
      const std::string at = "blk." + std::to_string(l) + ".";
      keep(Site::resid_pre, l, x);
      const Rows h = norm(x, at + "attn_norm.weight");
      Rows q = linear(h, at + "attn_q"), k = linear(h, at + "attn_k");
      const Rows v = linear(h, at + "attn_v");
      keep(Site::q, l, q);
      keep(Site::k, l, k);
      keep(Site::v, l, v);
      rotate(q, c_.heads);
      rotate(k, c_.kv_heads);
      keep(Site::rot_q, l, q);
      keep(Site::rot_k, l, k);
      const Rows z = attention(l, q, k, v);
      keep(Site::z, l, z);
      const Rows attn_out = linear(z, at + "attn_output");
      keep(Site::attn_out, l, attn_out);
      add(x, attn_out);
      keep(Site::resid_mid, l, x);
      const Rows h2 = norm(x, at + "ffn_norm.weight");
      Rows hidden = linear(h2, at + "ffn_gate");
      const Rows up = linear(h2, at + "ffn_up");
      for (std::size_t r = 0; r < hidden.size(); ++r)
        for (std::size_t i = 0; i < hidden[r].size(); ++i)
          hidden[r][i] = hidden[r][i] / (1 + std::exp(-hidden[r][i])) * up[r][i];
      keep(Site::mlp_post, l, hidden);
      const Rows mlp_out = linear(hidden, at + "ffn_down");
      keep(Site::mlp_out, l, mlp_out);
      add(x, mlp_out);
      keep(Site::resid_post, l, x);
    }
    return linear(norm(x, "output_norm.weight"), c_.tied_head ? "token_embd" : "output");
  }

  std::map<std::size_t, T> scaled_inputs;  // row -> what its embedding is multiplied by
  std::map<std::string, Rows> sites;
  std::map<std::int64_t, std::vector<Rows>> pattern;  // layer -> [head][row][key]

 private:
  const Rows& matrix(const std::string& name) {
    Rows& rows = matrices_[name];
    if (rows.empty()) {
      const Matrix& m = checkpoint_.matrix(name);
      std::vector<float> row(static_cast<std::size_t>(m.cols));
      for (std::int64_t r = 0; r < m.rows; ++r) {
        dequantize(m, r, 0, m.cols, row.data());
        rows.emplace_back(row.begin(), row.end());
      }
    }
    return rows;
  }

  Rows linear(const Rows& x, const std::string& name) {
    const Rows& w = matrix(name + ".weight");
    const bool has_bias = checkpoint_.find(name + ".bias") != nullptr;
    Rows y(x.size(), std::vector<T>(w.size()));
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t n = 0; n < w.size(); ++n) {
        T sum = 0;
        for (std::size_t i = 0; i < x[r].size(); ++i) sum += w[n][i] * x[r][i];
        y[r][n] = has_bias ? sum + matrix(name + ".bias")[0][n] : sum;
      }
    return y;
  }

  Rows norm(const Rows& x, const std::string& name) {
    const std::vector<T>& w = matrix(name)[0];
    Rows y = x;
    for (auto& row : y) {
      T squares = 0;
      for (T v : row) squares += v * v;
      const T factor = 1 / std::sqrt(squares / static_cast<T>(row.size()) + static_cast<T>(c_.norm_epsilon));
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = row[i] * factor * w[i];
    }
    return y;
  }

  void rotate(Rows& x, std::int64_t heads) {
    const RotaryConfig& rotary = c_.rotary_global;
    const std::int64_t D = c_.head_dim, half = rotary.dim / 2;
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < half; ++i) {
          double inverse = std::pow(rotary.base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary.dim));
          if (!rotary.frequency_divisors.empty()) inverse /= rotary.frequency_divisors[i];
          const double angle = static_cast<double>(t) * inverse;
          const T cos = static_cast<T>(std::cos(angle)), sin = static_cast<T>(std::sin(angle));
          const bool interleaved = rotary.pairs == RotaryPairs::interleaved;
          T& a = x[t][h * D + (interleaved ? 2 * i : i)];
          T& b = x[t][h * D + (interleaved ? 2 * i + 1 : i + half)];
          const T was = a;
          a = was * cos - b * sin;
          b = b * cos + was * sin;
        }
  }

  Rows attention(std::int64_t layer, const Rows& q, const Rows& k, const Rows& v) {
    const std::int64_t D = c_.head_dim, E = c_.value_dim, group = c_.heads / c_.kv_heads;
    Rows z(q.size(), std::vector<T>(static_cast<std::size_t>(c_.heads * E), T(0)));
    pattern[layer].assign(static_cast<std::size_t>(c_.heads), Rows(q.size(), std::vector<T>(q.size(), T(0))));
    for (std::size_t t = 0; t < q.size(); ++t)
      for (std::int64_t h = 0; h < c_.heads; ++h) {
        const std::int64_t g = h / group;
        std::vector<T> p(t + 1);
        T max = -INFINITY, sum = 0;
        for (std::size_t j = 0; j <= t; ++j) {
          T dot = 0;
          for (std::int64_t d = 0; d < D; ++d) dot += q[t][h * D + d] * k[j][g * D + d];
          p[j] = dot * static_cast<T>(c_.attention_scale);
          max = std::max(max, p[j]);
        }
        for (T& s : p) sum += s = std::exp(s - max);
        for (std::size_t j = 0; j <= t; ++j) {
          pattern[layer][h][t][j] = p[j] / sum;
          for (std::int64_t e = 0; e < E; ++e) z[t][h * E + e] += p[j] / sum * v[j][g * E + e];
        }
      }
    return z;
  }

  static void add(Rows& x, const Rows& y) {
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t i = 0; i < x[r].size(); ++i) x[r][i] += y[r][i];
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& c_;
  std::map<std::string, Rows> matrices_;
};

}  // namespace regard::testing
