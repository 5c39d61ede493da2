#include "report/estimate.h"

#include <algorithm>
#include <chrono>

#include "kernels/matmul.h"
#include "reading/replay.h"
#include "tensor/buffer.h"

namespace regard {
namespace {

// Multiply-adds per second of the densest part of the model, on the threads and the target in force.
double rate(const Model& model) {
  const Matrix& matrix = model.layers().front().o.weight;
  constexpr std::int64_t kRows = 256;
  const Tensor<float, 2> x({kRows, matrix.cols});
  Tensor<float, 2> y({kRows, matrix.rows});
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    matmul(matrix, x.view(), y.view());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(kRows * matrix.rows * matrix.cols) / std::max(seconds, 1e-9));
  }
  return best;
}

}  // namespace

double estimated_seconds(const Model& model, const ReadingRequest& request, std::int64_t tokens) {
  const ModelConfig& c = model.config();
  const double T = static_cast<double>(tokens);
  const std::int64_t per_token =
      c.width * (c.heads * (c.head_dim + c.value_dim) + c.kv_heads * (c.head_dim + c.value_dim)) +
      c.width * (c.mixture.experts > 0 ? c.mixture.used * c.mixture.hidden : c.hidden) * (c.gated ? 3 : 2);
  const double layers = static_cast<double>(c.layers);
  double work = layers * static_cast<double>(per_token) * T;
  // Keys that all rows of a layer see together: the triangle, or a band of it; twice that where rows read both ways.
  double seen = 0;
  for (const std::int64_t window : c.window) {
    const double w = window > 0 ? std::min(static_cast<double>(window), T) : T;
    seen += w * T - w * w / 2;
  }
  if (c.window.empty()) seen = layers * T * T / 2;
  if (!c.causal) seen *= 2;
  work += seen * static_cast<double>(c.heads * (c.head_dim + c.value_dim));
  // Reading computes the scores again and looks at each weight once per statistic.
  constexpr double kPerStatistic = 8;
  work += seen * static_cast<double>(std::ssize(request.heads)) *
          (static_cast<double>(c.head_dim) + kPerStatistic * static_cast<double>(request.statistics.size()));
  const double rows = static_cast<double>(std::ssize(request.rows)), width = static_cast<double>(c.width);
  const double mixed = layers * static_cast<double>(c.heads * c.value_dim) * width;  // W_O of all layers, for one row
  if (request.has(Statistic::rollout)) {
    const double passes = static_cast<double>(Replay::layers_run(c, tokens)) / layers;
    work += passes * (layers * static_cast<double>(per_token) * T +
                      seen * static_cast<double>(c.heads * (c.head_dim + c.value_dim)));
    work += seen * static_cast<double>(c.heads) * (static_cast<double>(c.head_dim) + kPerStatistic * rows);
  }
  // A product in double, one number after the other, takes as long as this many of the others.
  constexpr double kPlain = 8;
  const std::vector<Statistic> read = statistics_read(request);
  if (std::find(read.begin(), read.end(), Statistic::value_norm) != read.end())
    work += kPlain * mixed * static_cast<double>(c.value_dim) +
            kPlain * layers * T * static_cast<double>(c.heads * c.value_dim * c.value_dim);
  if (request.has(Statistic::mixing)) work += mixed * T;
  if (request.has(Statistic::flow)) work += 2 * mixed * T * rows;
  if (request.has(Statistic::lens)) work += (layers + 2) * rows * width * static_cast<double>(c.vocabulary);
  if (request.has(Statistic::direct)) work += rows * (kPlain * mixed + width * static_cast<double>(c.vocabulary));
  return work / rate(model);
}

}  // namespace regard
