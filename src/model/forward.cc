#include "model/forward.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/dequantize.h"
#include "kernels/softmax.h"
#include "model/blocks.h"
#include "model/cached_keys.h"
#include "model/layers.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard {
namespace {

// Room in the cache for the rows; how long each sequence is with them.
std::vector<std::int64_t> check_and_reserve(const ModelConfig& config, State& state, std::span<const Row> rows) {
  KeyValueCache& cache = state.cache;
  std::vector<std::int64_t> lengths;
  for (int s = 0; s < cache.sequences(); ++s) lengths.push_back(cache.length(s));
  for (const Row& row : rows) {
    if (row.token < 0 || row.token >= config.vocabulary)
      throw Error(ErrorCode::bad_input,
                  fmt::format("token id {} is outside the vocabulary of {}", row.token, config.vocabulary),
                  fmt::format("ids go from 0 to {}", config.vocabulary - 1));
    if (row.sequence < 0 || row.sequence >= cache.sequences())
      throw Error(ErrorCode::bad_input,
                  fmt::format("a row of sequence {}, the state has {}", row.sequence, lengths.size()));
    if (state.source && state.source->length(row.sequence) == 0)
      throw Error(ErrorCode::usage,
                  fmt::format("{} reads a source, and sequence {} has none", config.family, row.sequence),
                  "give it one (model/source.h)");
    if (row.position != lengths[row.sequence]++)
      throw Error(ErrorCode::bad_input,
                  fmt::format("row at position {} of sequence {} does not continue it (next is {})", row.position,
                              row.sequence, lengths[row.sequence] - 1));
  }
  for (int s = 0; s < cache.sequences(); ++s) {
    if (config.context > 0 && lengths[s] > config.context)
      throw Error(
          ErrorCode::bad_input,
          fmt::format("a text of {} tokens is longer than the model's context of {}", lengths[s], config.context),
          "shorten it");
    cache.reserve(s, lengths[s]);
  }
  return lengths;
}

}  // namespace

void forward(const Model& model, State& state, std::span<const Row> rows, View<float, 2> resid, Tap* tap,
             const std::vector<std::int64_t>* kept) {
  if (rows.empty()) return;
  const std::vector<std::int64_t> lengths = check_and_reserve(model.config(), state, rows);
  embed(model, rows, resid);
  CachedKeys keys(state.cache, lengths, state.source ? &*state.source : nullptr);
  Blocks blocks(model, state, keys, tap);
  Stream stream{{rows.begin(), rows.end()}, resid};
  const std::int64_t last = model.config().layers - 1;
  for (std::int64_t layer = 0; layer <= last; ++layer) blocks.run(layer, stream, layer == last ? kept : nullptr);
  for (int s = 0; s < state.cache.sequences(); ++s) state.cache.set_length(s, lengths[s]);
}

namespace {

// y[r] += row `index(r)` of the table, dequantised.
template <class Index>
void add_rows(const Matrix& table, View<float, 2> y, const Index& index) {
  std::vector<float> row(static_cast<std::size_t>(table.cols));
  for (std::int64_t r = 0; r < y.shape[0]; ++r) {
    dequantize(table, index(r), 0, table.cols, row.data());
    add(View<const float, 2>(row.data(), {1, table.cols}), y.slice(r, r + 1));
  }
}

}  // namespace

void embed(const Model& model, std::span<const Row> rows, View<float, 2> resid) {
  const ModelConfig& c = model.config();
  const Embedding& e = model.embedding();
  const std::int64_t n = std::ssize(rows);
  Tensor<float, 2> narrow;  // where a projection follows
  if (e.projection.weight.data != nullptr) narrow = Tensor<float, 2>({n, c.embedding_width});
  const View<float, 2> to = narrow.size() > 0 ? narrow.view() : resid.slice(0, n);
  for (std::int64_t r = 0; r < n; ++r) dequantize(e.tokens, rows[r].token, 0, c.embedding_width, &to(r, 0));
  if (c.embedding_scale != 1) scale(c.embedding_scale, to);
  if (narrow.size() > 0) apply(e.projection, narrow.view(), resid.slice(0, n));
  if (!e.type.empty()) add_bias(e.type.data(), resid.slice(0, n));
  if (c.position_table)
    add_rows(e.positions, resid.slice(0, n), [&](std::int64_t r) { return rows[r].position + c.position_offset; });
  if (c.embedding_norm) apply(e.norm, c, resid.slice(0, n), resid.slice(0, n));
}

namespace {

void cap(float softcap, View<float, 2> x) {
  if (softcap <= 0) return;
  for (std::int64_t r = 0; r < x.shape[0]; ++r) {
    float* row = &x(r, 0);
    for (std::int64_t i = 0; i < x.shape[1]; ++i) row[i] /= softcap;
    tanh(row, row, x.shape[1]);
    for (std::int64_t i = 0; i < x.shape[1]; ++i) row[i] *= softcap;
  }
}

}  // namespace

namespace {

// What the unembedding reads: [R, embedding width].
Tensor<float, 2> before_logits(const Model& model, View<const float, 2> resid) {
  const ModelConfig& c = model.config();
  const Head& head = model.head();
  if (head.logits.weight.data == nullptr)
    throw Error(ErrorCode::unsupported, "this model has no head that says tokens, so there are no logits",
                "look at what it reads (regard read), or use a model with a language-model head");
  Tensor<float, 2> x({resid.shape[0], c.width});
  apply(head.final_norm, c, resid, x.view());
  if (c.head_scale != 1) scale(c.head_scale, x.view());
  if (head.transform.weight.data != nullptr) {
    Tensor<float, 2> y({resid.shape[0], c.width});
    apply(head.transform, x.view(), y.view());
    activate(c.head_activation, y.view(), y.view());
    apply(head.transform_norm, c, y.view(), y.view());
    x = std::move(y);
  }
  if (head.projection.weight.data != nullptr) {
    Tensor<float, 2> y({resid.shape[0], c.embedding_width});
    apply(head.projection, x.view(), y.view());
    x = std::move(y);
  }
  return x;
}

}  // namespace

void logits(const Model& model, View<const float, 2> resid, View<float, 2> out) {
  const Tensor<float, 2> x = before_logits(model, resid);
  apply(model.head().logits, x.view(), out);
  cap(model.config().logit_softcap, out);
}

void logits_of(const Model& model, View<const float, 2> resid, std::span<const std::int32_t> tokens,
               View<float, 2> out) {
  const std::int64_t rows = resid.shape[0];
  const Tensor<float, 2> x = before_logits(model, resid);
  const Linear& unembedding = model.head().logits;
  Tensor<float, 2> column({rows, 1});
  Matrix one = unembedding.weight;  // a row of the unembedding at a time
  one.rows = 1;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    one.data = unembedding.weight.row(tokens[t]);
    matmul(one, x.view(), column.view());
    if (!unembedding.bias.empty()) add_bias(&unembedding.bias[tokens[t]], column.view());
    for (std::int64_t r = 0; r < rows; ++r) out(r, static_cast<std::int64_t>(t)) = column(r, 0);
  }
  cap(model.config().logit_softcap, out);
}

std::int64_t rows_per_pass(const ModelConfig& config, std::int64_t tokens, std::int64_t chunk) {
  return config.causal ? std::min(chunk, tokens) : tokens;
}

Tensor<float, 2> feed(const Model& model, State& state, std::span<const std::int32_t> ids, int sequence,
                      const FeedOptions& options) {
  const std::int64_t total = std::ssize(ids), width = model.config().width;
  if (total == 0) return {};
  const std::int64_t start = state.cache.length(sequence);
  if (model.config().context > 0 &&
      start + total > model.config().context)  // say so before the work, not at the end of it
    throw Error(ErrorCode::bad_input,
                fmt::format("a text of {} tokens is longer than the model's context of {}", start + total,
                            model.config().context),
                "shorten it");
  if (!model.config().causal && start > 0)
    throw Error(
        ErrorCode::usage,
        fmt::format("{} reads in both directions: a text cannot be continued, only read whole", model.config().family));
  const std::int64_t chunk = rows_per_pass(model.config(), total, options.chunk);
  Tensor<float, 2> resid({chunk, width});
  const bool looked_at = options.tap != nullptr || options.on_rows;
  std::vector<Row> rows;
  std::int64_t n = 0;
  for (std::int64_t first = 0; first < total; first += n) {
    n = std::min(chunk, total - first);
    rows.clear();
    for (std::int64_t i = first; i < first + n; ++i) rows.push_back({ids[i], sequence, start + i});
    const auto part = resid.view().slice(0, n);
    if (!looked_at) {
      const std::vector<std::int64_t> last = {n - 1};
      forward(model, state, rows, part, nullptr, &last);
    } else {
      forward(model, state, rows, part, options.tap);
    }
    if (options.on_rows) options.on_rows(first, part);
    if (options.progress != nullptr) options.progress->at("reading", first + n, total);
  }
  Tensor<float, 2> last({1, width});
  std::copy_n(&resid(looked_at ? n - 1 : 0, 0), width, last.data());
  return last;
}

TokenLogprobs::TokenLogprobs(const Model& model, std::span<const std::int32_t> ids)
    : model_(model), ids_(ids.begin(), ids.end()), values_(ids.empty() ? 0 : ids.size() - 1) {}

void TokenLogprobs::rows(std::int64_t first, View<const float, 2> resid) {
  constexpr std::int64_t kRows = 64;  // logits of this many rows live at a time
  const std::int64_t V = model_.config().vocabulary;
  const std::int64_t end =
      std::min(first + resid.shape[0], std::ssize(values_));  // the last row predicts no given token
  if (first >= end) return;
  Tensor<float, 2> out({std::min(kRows, end - first), V});
  for (std::int64_t t = first; t < end; t += kRows) {
    const std::int64_t n = std::min(kRows, end - t);
    logits(model_, resid.slice(t - first, t - first + n), out.view().slice(0, n));
    parallel_for(n, [&](std::int64_t r, int) {
      log_softmax(&out(r, 0), &out(r, 0),
                  V);  // closer to the truth than taking log-sum-exp off, where logits are large
      values_[t + r] = out(r, ids_[t + r + 1]);
    });
  }
}

std::int64_t scratch_bytes(const ModelConfig& c, std::int64_t rows) {
  const std::int64_t per_row = 3 * c.width + 2 * c.heads * c.head_dim + 2 * c.heads * c.value_dim + 2 * c.hidden;
  return rows * per_row * static_cast<std::int64_t>(sizeof(float)) +
         64 * c.vocabulary * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace regard
