#include "model/forward.h"

#include <algorithm>
#include <cmath>

#include "attention/forward.h"
#include "kernels/activation.h"
#include "kernels/dequantize.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard {
namespace {

// A place for `rows` rows in a scratch vector, which only ever grows.
View<float, 2> place(std::vector<float>& memory, std::int64_t rows, std::int64_t channels) {
  if (static_cast<std::int64_t>(memory.size()) < rows * channels)
    memory.resize(static_cast<std::size_t>(rows * channels));
  return {memory.data(), {rows, channels}};
}

// [rows, heads * channels] seen as [rows, heads, channels].
View<float, 3> by_head(View<float, 2> x, std::int64_t heads) {
  return {x.data, {x.shape[0], heads, x.shape[1] / heads}, {x.stride[0], x.shape[1] / heads, 1}};
}

void apply(const Linear& linear, View<const float, 2> x, View<float, 2> y) {
  matmul(linear.weight, x, y);
  if (!linear.bias.empty()) add_bias(linear.bias.data(), y);
}

void apply(const Norm& norm, const ModelConfig& c, View<const float, 2> x, View<float, 2> y) {
  if (c.norm == NormKind::rms)
    rms_norm(x, norm.weight.data(), c.norm_epsilon, c.norm_weight_plus_one, y);
  else
    layer_norm(x, norm.weight.data(), norm.bias.empty() ? nullptr : norm.bias.data(), c.norm_epsilon, y);
}

// A norm over each head's channels (QK-norm): heads are rows of their own.
void apply_per_head(const Norm& norm, const ModelConfig& c, View<float, 3> x) {
  const View<float, 2> rows(x.data, {x.shape[0] * x.shape[1], x.shape[2]});
  apply(norm, c, rows, rows);
}

// One forward pass of some rows through the blocks.
class Pass {
 public:
  Pass(const Model& model, State& state, std::span<const Row> rows, View<float, 2> resid, Tap* tap)
      : model_(model), config_(model.config()), state_(state), rows_(rows), resid_(resid), tap_(tap) {
    check_and_reserve();
    for (const Row& row : rows_) {
      state_.scratch.positions.push_back(row.position);
      state_.scratch.query_rows.push_back({row.sequence, 0, row.position});
    }
  }

  void run() {
    embed();
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) block(layer);
    for (int s = 0; s < state_.cache.sequences(); ++s) state_.cache.set_length(s, lengths_[s]);
  }

 private:
  // A transformer layer.
  void block(std::int64_t l) {
    const Layer& layer = model_.layers()[l];
    Scratch& s = state_.scratch;
    const std::int64_t n = std::ssize(rows_);
    const auto normed = place(s.normed, n, config_.width);
    const auto branch = place(s.branch, n, config_.width);

    announce(Site::resid_pre, l, by_head(resid_, 1));
    apply(layer.attention_norm, config_, resid_, normed);
    const auto z = attention(l, layer, normed);
    apply(layer.o, z, branch);
    if (config_.post_norms) apply(layer.post_attention_norm, config_, branch, branch);
    announce(Site::attn_out, l, by_head(branch, 1));
    add(branch, resid_);
    announce(Site::resid_mid, l, by_head(resid_, 1));

    apply(layer.mlp_norm, config_, resid_, normed);
    const auto hidden = feed_forward(layer, normed);
    announce(Site::mlp_post, l, by_head(hidden, 1));
    apply(layer.down, hidden, branch);
    if (config_.post_norms) apply(layer.post_mlp_norm, config_, branch, branch);
    announce(Site::mlp_out, l, by_head(branch, 1));
    add(branch, resid_);
    announce(Site::resid_post, l, by_head(resid_, 1));
  }

  // Queries, keys and values; rotary; the cache; what every head read. Gives z [rows, H * E].
  View<float, 2> attention(std::int64_t l, const Layer& layer, View<const float, 2> normed) {
    Scratch& s = state_.scratch;
    const std::int64_t n = std::ssize(rows_);
    const auto q = by_head(project(layer.q, normed, s.q), config_.heads);
    const auto k = by_head(project(layer.k, normed, s.k), config_.kv_heads);
    const auto v = by_head(project(layer.v, normed, s.v), config_.kv_heads);
    if (config_.query_key_norm) {
      apply_per_head(layer.query_norm, config_, q);
      apply_per_head(layer.key_norm, config_, k);
    }
    announce(Site::q, l, q);
    announce(Site::k, l, k);
    announce(Site::v, l, v);
    if (config_.rotary) {
      RotaryTable& rotary = config_.window[l] > 0 ? state_.rotary_local : state_.rotary_global;
      rotary.rotate(q, s.positions.data());
      rotary.rotate(k, s.positions.data());
    }
    announce(Site::rot_q, l, q);
    announce(Site::rot_k, l, k);
    append_to_cache(l, k, v);

    const auto z = place(s.z, n, config_.heads * config_.value_dim);
    read_and_mix(l, q, by_head(z, config_.heads));
    announce(Site::z, l, by_head(z, config_.heads));
    announce_result(l, layer, z);
    return z;
  }

  View<float, 2> project(const Linear& linear, View<const float, 2> x, std::vector<float>& memory) {
    const auto y = place(memory, x.shape[0], linear.weight.rows);
    apply(linear, x, y);
    return y;
  }

  void read_and_mix(std::int64_t l, View<const float, 3> q, View<float, 3> z) {
    Problem problem;
    problem.q = q;
    problem.rows = state_.scratch.query_rows;
    std::vector<Sequence> sequences;
    for (int s = 0; s < state_.cache.sequences(); ++s) sequences.push_back(state_.cache.view(s, l, lengths_[s]));
    problem.sequences = sequences;
    problem.kv_heads = config_.kv_heads;
    problem.value_channels = config_.value_dim;
    problem.mask.causal = true;
    if (config_.window[l] > 0) problem.mask.window_left = config_.window[l];
    if (tap_ != nullptr) problem.mask.edges = tap_->edges(l, rows_);
    problem.scale = config_.attention_scale;
    problem.softcap = config_.attention_softcap;

    std::vector<Reader*> readers;
    if (tap_ != nullptr) readers = tap_->readers(l, rows_);
    View<RowSoftmax, 2> softmax;
    if (!readers.empty()) {
      state_.scratch.softmax.resize(static_cast<std::size_t>(std::ssize(rows_) * config_.heads));
      softmax = {state_.scratch.softmax.data(), {std::ssize(rows_), config_.heads}};
    }
    regard::forward(problem, z, softmax);
    if (!readers.empty()) read(problem, softmax, readers);
  }

  void append_to_cache(std::int64_t l, View<const float, 3> k, View<const float, 3> v) {
    for (std::int64_t r = 0; r < std::ssize(rows_); ++r) {
      const Row& row = rows_[r];
      std::copy_n(k[r].data, k.shape[1] * k.shape[2], state_.cache.key(row.sequence, l, row.position));
      std::copy_n(v[r].data, v.shape[1] * v.shape[2], state_.cache.value(row.sequence, l, row.position));
    }
  }

  // f(gate) * up, or f(up).
  View<float, 2> feed_forward(const Layer& layer, View<const float, 2> normed) {
    const auto up = project(layer.up, normed, state_.scratch.up);
    if (!config_.gated) {
      activate(config_.activation, up, up);
      return up;
    }
    const auto gate = project(layer.gate, normed, state_.scratch.gate);
    activate_gated(config_.activation, gate, up, gate);
    return gate;
  }

  // What each head alone adds to attn_out: W_O times z with every other head at zero, in the same order of sums as
  // attn_out.
  void announce_result(std::int64_t l, const Layer& layer, View<const float, 2> z) {
    if (tap_ == nullptr || !tap_->wants(Site::result, l)) return;
    const std::int64_t n = z.shape[0], H = config_.heads, E = config_.value_dim, C = config_.width;
    const auto result = by_head(place(state_.scratch.result, n, H * C), H);
    std::vector<float> alone(static_cast<std::size_t>(n * H * E), 0.0f);
    const View<float, 2> masked(alone.data(), {n, H * E});
    for (std::int64_t h = 0; h < H; ++h) {
      std::fill(alone.begin(), alone.end(), 0.0f);
      for (std::int64_t r = 0; r < n; ++r) std::copy_n(&z(r, h * E), E, &masked(r, h * E));
      matmul(layer.o.weight, masked, View<float, 2>(&result(0, h, 0), {n, C}, {result.stride[0], 1}));
    }
    tap_->at(Site::result, l, rows_, result);
  }

  void announce(Site site, std::int64_t l, View<float, 3> value) {
    if (tap_ != nullptr && tap_->wants(site, l)) tap_->at(site, l, rows_, value);
  }

  void embed() {
    for (std::int64_t r = 0; r < std::ssize(rows_); ++r)
      dequantize(model_.embedding(), rows_[r].token, 0, config_.width, &resid_(r, 0));
    if (config_.embedding_scale != 1) scale(config_.embedding_scale, resid_);
  }

  void check_and_reserve() {
    for (int s = 0; s < state_.cache.sequences(); ++s) lengths_.push_back(state_.cache.length(s));
    for (const Row& row : rows_) {
      if (row.token < 0 || row.token >= config_.vocabulary)
        throw Error(ErrorCode::bad_input,
                    fmt::format("token id {} is outside the vocabulary of {}", row.token, config_.vocabulary),
                    fmt::format("ids go from 0 to {}", config_.vocabulary - 1));
      if (row.sequence < 0 || row.sequence >= state_.cache.sequences())
        throw Error(ErrorCode::bad_input,
                    fmt::format("a row of sequence {}, the state has {}", row.sequence, lengths_.size()));
      if (row.position != lengths_[row.sequence]++)
        throw Error(ErrorCode::bad_input,
                    fmt::format("row at position {} of sequence {} does not continue it (next is {})", row.position,
                                row.sequence, lengths_[row.sequence] - 1));
    }
    for (int s = 0; s < state_.cache.sequences(); ++s) {
      if (config_.context > 0 && lengths_[s] > config_.context)
        throw Error(
            ErrorCode::bad_input,
            fmt::format("a text of {} tokens is longer than the model's context of {}", lengths_[s], config_.context),
            "shorten it");
      state_.cache.reserve(s, lengths_[s]);
    }
    state_.scratch.positions.clear();
    state_.scratch.query_rows.clear();
  }

  const Model& model_;
  const ModelConfig& config_;
  State& state_;
  std::span<const Row> rows_;
  View<float, 2> resid_;
  Tap* tap_;
  std::vector<std::int64_t> lengths_;  // of every sequence, after this pass
};

}  // namespace

void forward(const Model& model, State& state, std::span<const Row> rows, View<float, 2> resid, Tap* tap) {
  if (rows.empty()) return;
  Pass(model, state, rows, resid, tap).run();
}

void logits(const Model& model, View<const float, 2> resid, View<float, 2> out) {
  const ModelConfig& c = model.config();
  Tensor<float, 2> normed({resid.shape[0], c.width});
  apply(model.final_norm(), c, resid, normed.view());
  apply(model.head(), normed.view(), out);
  if (c.logit_softcap <= 0) return;
  for (std::int64_t r = 0; r < out.shape[0]; ++r) {
    float* row = &out(r, 0);
    for (std::int64_t i = 0; i < out.shape[1]; ++i) row[i] /= c.logit_softcap;
    tanh(row, row, out.shape[1]);
    for (std::int64_t i = 0; i < out.shape[1]; ++i) row[i] *= c.logit_softcap;
  }
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
  Tensor<float, 2> resid({std::min(options.chunk, total), width});
  std::vector<Row> rows;
  std::int64_t n = 0;
  for (std::int64_t first = 0; first < total; first += n) {
    n = std::min(options.chunk, total - first);
    rows.clear();
    for (std::int64_t i = first; i < first + n; ++i) rows.push_back({ids[i], sequence, start + i});
    const auto part = resid.view().slice(0, n);
    forward(model, state, rows, part, options.tap);
    if (options.on_rows) options.on_rows(first, part);
    if (options.progress != nullptr) options.progress->at("reading", first + n, total);
  }
  Tensor<float, 2> last({1, width});
  std::copy_n(&resid(n - 1, 0), width, last.data());
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
    parallel_for(n,
                 [&](std::int64_t r, int) { values_[t + r] = out(r, ids_[t + r + 1]) - log_sum_exp(&out(r, 0), V); });
  }
}

std::int64_t scratch_bytes(const ModelConfig& c, std::int64_t rows) {
  const std::int64_t per_row = 3 * c.width + 2 * c.heads * c.head_dim + 2 * c.heads * c.value_dim + 2 * c.hidden;
  return rows * per_row * static_cast<std::int64_t>(sizeof(float)) +
         64 * c.vocabulary * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace regard
