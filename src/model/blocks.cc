#include "model/blocks.h"

#include <algorithm>

#include "attention/forward.h"
#include "attention/substitute.h"
#include "kernels/activation.h"
#include "model/layers.h"

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

View<float, 2> project(const Linear& linear, View<const float, 2> x, std::vector<float>& memory) {
  const auto y = place(memory, x.shape[0], linear.weight.rows);
  apply(linear, x, y);
  return y;
}

// A norm over each head's channels (QK-norm): heads are rows of their own.
void apply_per_head(const Norm& norm, const ModelConfig& c, View<float, 3> x) {
  const View<float, 2> rows(x.data, {x.shape[0] * x.shape[1], x.shape[2]});
  apply(norm, c, rows, rows);
}

// Moves the kept rows to the front; gives the view of them.
View<float, 2> keep_rows(View<float, 2> x, const std::vector<std::int64_t>& kept) {
  for (std::int64_t i = 0; i < std::ssize(kept); ++i)
    if (kept[i] != i) std::copy_n(&x(kept[i], 0), x.shape[1], &x(i, 0));
  return x.slice(0, std::ssize(kept));
}

}  // namespace

Blocks::Blocks(const Model& model, State& state, KeyStore& keys, Tap* tap)
    : model_(model), config_(model.config()), state_(state), keys_(keys), tap_(tap) {}

// A transformer layer.
void Blocks::run(std::int64_t l, Stream& stream, const std::vector<std::int64_t>* kept) {
  const Layer& layer = model_.layers()[l];
  const bool after = config_.norm_place == NormPlace::after;

  announce(Site::resid_pre, l, stream.rows, by_head(stream.resid, 1));
  const auto z = attention(l, stream, enter(layer.attention_norm, stream.resid), kept);
  const auto branch = place(state_.scratch.branch, std::ssize(stream.rows), config_.width);
  apply(layer.o, z, branch);
  leave(layer.post_attention_norm, branch);
  announce(Site::attn_out, l, stream.rows, by_head(branch, 1));
  View<float, 2> normed;
  if (config_.parallel_branches) normed = enter(layer.mlp_norm, stream.resid);
  add(branch, stream.resid);
  announce(Site::resid_mid, l, stream.rows, by_head(stream.resid, 1));

  if (after) apply(layer.attention_norm, config_, stream.resid, stream.resid);
  if (config_.cross_attention) {
    apply(layer.cross.o, cross_attention(l, stream, enter(layer.cross.norm, stream.resid)), branch);
    announce(Site::cross_out, l, stream.rows, by_head(branch, 1));
    add(branch, stream.resid);
    if (after) apply(layer.cross.norm, config_, stream.resid, stream.resid);
  }
  if (!config_.parallel_branches) normed = enter(layer.mlp_norm, stream.resid);
  feed_forward(l, stream, normed, branch);
  leave(layer.post_mlp_norm, branch);
  announce(Site::mlp_out, l, stream.rows, by_head(branch, 1));
  add(branch, stream.resid);
  if (after) apply(layer.mlp_norm, config_, stream.resid, stream.resid);
  announce(Site::resid_post, l, stream.rows, by_head(stream.resid, 1));
}

// What a branch reads of the residual: normed, or as it is where the norm comes after the branch. A copy either way.
View<float, 2> Blocks::enter(const Norm& norm, View<const float, 2> resid) {
  const auto normed = place(state_.scratch.normed, resid.shape[0], config_.width);
  static const Norm kNone;
  apply(config_.norm_place == NormPlace::after ? kNone : norm, config_, resid, normed);
  return normed;
}

void Blocks::leave(const Norm& norm, View<float, 2> branch) {
  if (config_.norm_place == NormPlace::around) apply(norm, config_, branch, branch);
}

// Keys, values and queries; rotary; what every head read. Gives z [kept rows, H * E].
View<float, 2> Blocks::attention(std::int64_t l, Stream& stream, View<float, 2> normed,
                                 const std::vector<std::int64_t>* kept) {
  const Layer& layer = model_.layers()[l];
  Scratch& s = state_.scratch;
  const auto k = by_head(project(layer.k, normed, s.k), config_.kv_heads);
  const auto v = by_head(project(layer.v, normed, s.v), config_.kv_heads);
  if (config_.query_key_norm) apply_per_head(layer.key_norm, config_, k);
  announce(Site::k, l, stream.rows, k);
  announce(Site::v, l, stream.rows, v);
  rotate(l, k, stream.rows);
  announce(Site::rot_k, l, stream.rows, k);
  keys_.put(l, stream.rows, k, v);

  if (kept != nullptr) {
    normed = keep_rows(normed, *kept);
    stream.resid = keep_rows(stream.resid, *kept);
    for (std::size_t i = 0; i < kept->size(); ++i) stream.rows[i] = stream.rows[(*kept)[i]];
    stream.rows.resize(kept->size());
  }
  const auto q = by_head(project(layer.q, normed, s.q), config_.heads);
  if (config_.query_key_norm) apply_per_head(layer.query_norm, config_, q);
  announce(Site::q, l, stream.rows, q);
  rotate(l, q, stream.rows);
  announce(Site::rot_q, l, stream.rows, q);

  const auto z = place(s.z, std::ssize(stream.rows), config_.heads * config_.value_dim);
  read_and_mix(l, stream, q, by_head(z, config_.heads));
  announce(Site::z, l, stream.rows, by_head(z, config_.heads));
  announce_result(l, stream.rows, z);
  return z;
}

void Blocks::rotate(std::int64_t l, View<float, 3> x, std::span<const Row> rows) {
  if (!config_.rotary) return;
  std::vector<std::int64_t>& positions = state_.scratch.positions;
  positions.clear();
  for (const Row& row : rows) positions.push_back(row.position);
  (config_.window[l] > 0 ? state_.rotary_local : state_.rotary_global).rotate(x, positions.data());
}

// What every head read of the source: z [rows, H * E].
View<float, 2> Blocks::cross_attention(std::int64_t l, const Stream& stream, View<const float, 2> normed) {
  Scratch& s = state_.scratch;
  const auto q = by_head(project(model_.layers()[l].cross.q, normed, s.q), config_.heads);
  announce(Site::cross_q, l, stream.rows, q);
  const std::vector<Sequence> sources = keys_.sources(l);
  Problem problem = posed(cross_attention_problem(model_, l), stream, q, sources);
  if (tap_ != nullptr) problem.mask.edges = tap_->cross_edges(l, stream.rows);
  const auto z = place(s.z, std::ssize(stream.rows), config_.heads * config_.value_dim);
  mix(problem, l, stream, tap_ != nullptr ? tap_->cross_readers(l, stream.rows) : std::vector<Reader*>(), false,
      by_head(z, config_.heads));
  announce(Site::cross_z, l, stream.rows, by_head(z, config_.heads));
  return z;
}

// A layer's problem with what this pass brings.
Problem Blocks::posed(Problem problem, const Stream& stream, View<const float, 3> q,
                      std::span<const Sequence> sequences) {
  std::vector<QueryRow>& rows = state_.scratch.query_rows;
  rows.clear();
  for (const Row& row : stream.rows) rows.push_back({row.sequence, 0, row.position});
  problem.q = q;
  problem.rows = rows;
  problem.sequences = sequences;
  return problem;
}

void Blocks::read_and_mix(std::int64_t l, const Stream& stream, View<const float, 3> q, View<float, 3> z) {
  const std::vector<Sequence> sequences = keys_.sequences(l);
  Problem problem = posed(attention_problem(model_, l), stream, q, sequences);
  if (config_.relative_buckets > 0) {
    std::int64_t longest = 0;
    for (const Sequence& sequence : sequences) longest = std::max(longest, sequence.length);
    problem.mask.bias = state_.relative_bias.view(model_, longest);
    problem.mask.bias_by_position = true;
  }
  if (tap_ == nullptr) return mix(problem, l, stream, {}, false, z);
  problem.mask.edges = tap_->edges(l, stream.rows);
  mix(problem, l, stream, tap_->readers(l, stream.rows), tap_->wants(Site::pattern, l), z);
}

// substituted: some rows and heads read by other weights than the problem's.
void Blocks::mix(const Problem& problem, std::int64_t l, const Stream& stream, const std::vector<Reader*>& readers,
                 bool substituted, View<float, 3> z) {
  Scratch& s = state_.scratch;
  const auto substitutes = [&](bool first) -> EachSubstitute {
    return [&, first](const auto& use) { tap_->substitutes(l, stream.rows, problem, first, use); };
  };
  View<RowSoftmax, 2> softmax;
  if (!readers.empty()) {
    s.softmax.resize(static_cast<std::size_t>(std::ssize(stream.rows) * config_.heads));
    softmax = {s.softmax.data(), {std::ssize(stream.rows), config_.heads}};
  }
  forward(problem, z, softmax);
  if (substituted) forward(problem, substitutes(true), z, softmax);
  if (readers.empty()) return;
  if (substituted)
    read(problem, substitutes(false), softmax, readers);
  else
    read(problem, softmax, readers);
}

void Blocks::feed_forward(std::int64_t l, const Stream& stream, View<const float, 2> normed, View<float, 2> branch) {
  const Layer& layer = model_.layers()[l];
  if (!layer.experts.empty()) return mixture(layer, normed, branch);
  const auto hidden = activated(layer.mlp, normed);
  announce(Site::mlp_post, l, stream.rows, by_head(hidden, 1));
  apply(layer.mlp.down, hidden, branch);
}

// f(gate) * up, or f(up).
View<float, 2> Blocks::activated(const FeedForward& mlp, View<const float, 2> normed) {
  const auto up = project(mlp.up, normed, state_.scratch.up);
  if (!config_.gated) {
    activate(config_.activation, up, up);
    return up;
  }
  const auto gate = project(mlp.gate, normed, state_.scratch.gate);
  activate_gated(config_.activation, gate, up, gate);
  return gate;
}

// Each expert on the rows that take it. A row's experts are added in ascending order, whatever rows pass with it.
void Blocks::mixture(const Layer& layer, View<const float, 2> normed, View<float, 2> branch) {
  Scratch& s = state_.scratch;
  const std::int64_t rows = normed.shape[0], C = config_.width, used = config_.mixture.used;
  const Routes routes = regard::routes(config_.mixture, project(layer.router, normed, s.router));
  for (std::int64_t r = 0; r < rows; ++r) std::fill_n(&branch(r, 0), C, 0.0f);
  std::vector<std::int64_t> taken;  // places in routes
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    taken.clear();
    for (std::int64_t i = 0; i < rows * used; ++i)
      if (routes.expert[i] == static_cast<std::int32_t>(e)) taken.push_back(i);
    if (taken.empty()) continue;
    const std::int64_t n = std::ssize(taken);
    const auto in = place(s.expert_in, n, C), out = place(s.expert_out, n, C);
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(&normed(taken[i] / used, 0), C, &in(i, 0));
    apply(layer.experts[e].down, activated(layer.experts[e], in), out);
    for (std::int64_t i = 0; i < n; ++i) {
      float* sum = &branch(taken[i] / used, 0);
      for (std::int64_t c = 0; c < C; ++c) sum[c] += routes.weight[taken[i]] * out(i, c);
    }
  }
}

// What each head alone adds to attn_out: W_O times z with every other head at zero, in the same order of sums as
// attn_out.
void Blocks::announce_result(std::int64_t l, std::span<const Row> rows, View<const float, 2> z) {
  if (tap_ == nullptr || !tap_->wants(Site::result, l)) return;
  const Layer& layer = model_.layers()[l];
  const std::int64_t n = z.shape[0], H = config_.heads, E = config_.value_dim, C = config_.width;
  const auto result = by_head(place(state_.scratch.result, n, H * C), H);
  std::vector<float> alone(static_cast<std::size_t>(n * H * E), 0.0f);
  const View<float, 2> masked(alone.data(), {n, H * E});
  for (std::int64_t h = 0; h < H; ++h) {
    std::fill(alone.begin(), alone.end(), 0.0f);
    for (std::int64_t r = 0; r < n; ++r) std::copy_n(&z(r, h * E), E, &masked(r, h * E));
    matmul(layer.o.weight, masked, View<float, 2>(&result(0, h, 0), {n, C}, {result.stride[0], 1}));
  }
  tap_->at(Site::result, l, rows, result);
}

void Blocks::announce(Site site, std::int64_t l, std::span<const Row> rows, View<float, 3> value) {
  if (tap_ != nullptr && tap_->wants(site, l)) tap_->at(site, l, rows, value);
}

}  // namespace regard
