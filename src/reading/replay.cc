#include "reading/replay.h"

#include <algorithm>
#include <utility>

#include "model/blocks.h"
#include "model/cached_keys.h"
#include "model/forward.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kChunk = 512;

// How many times the residuals of the whole text can be kept; at least once.
std::int64_t slots(const ModelConfig& config, std::int64_t tokens, std::int64_t kept_bytes = Replay::kKeptBytes) {
  const std::int64_t once = std::max<std::int64_t>(tokens * config.width, 1) * static_cast<std::int64_t>(sizeof(float));
  return std::clamp<std::int64_t>(kept_bytes / once, 1, std::max<std::int64_t>(config.layers - 1, 1));
}

// n over k, or `most` where it is more.
std::int64_t choose(std::int64_t n, std::int64_t k, std::int64_t most) {
  std::int64_t value = 1;
  for (std::int64_t i = 1; i <= k && value < most; ++i) value = value * (n - k + i) / i;
  return std::min(value, most);
}

// The layer among [first, last) whose input is kept first, when `slots` inputs beside that of `first` can be.
std::int64_t split(std::int64_t first, std::int64_t last, std::int64_t slots) {
  const std::int64_t n = last - first;
  std::int64_t runs = 1;
  while (choose(slots + runs, slots, n) < n) ++runs;
  return first + std::clamp<std::int64_t>(choose(slots + runs - 1, slots, n), 1, n - 1);
}

// What is done, in order: advance(from, to) makes the input of `to` from that of `from`, which stays; visit(layer) uses
// up the input of `layer`, the last that was made.
template <typename Advance, typename Visit>
void walk_down(std::int64_t first, std::int64_t last, std::int64_t slots, Advance&& advance, Visit&& visit) {
  while (last - first > 1) {
    const std::int64_t middle = slots > 0 ? split(first, last, slots) : last - 1;
    advance(first, middle);
    walk_down(middle, last, std::max<std::int64_t>(slots - 1, 0), advance, visit);
    last = middle;
  }
  visit(first);
}

// Shows readers to a pass, and the pass to who watches.
class ReadersTap final : public Tap {
 public:
  ReadersTap(std::span<Reader* const> readers, Tap* watch) : readers_(readers.begin(), readers.end()), watch_(watch) {}
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override {
    std::vector<Reader*> all = readers_;
    if (watch_ != nullptr)
      for (Reader* reader : watch_->readers(layer, rows)) all.push_back(reader);
    return all;
  }

 private:
  std::vector<Reader*> readers_;
  Tap* watch_;
};

}  // namespace

Replay::Replay(const Model& model, State& state, std::span<const std::int32_t> ids, int sequence, Tap* watch,
               std::int64_t kept_bytes)
    : model_(model), state_(state), watch_(watch), slots_(slots(model.config(), std::ssize(ids), kept_bytes)) {
  if (state.cache.length(sequence) != std::ssize(ids))
    throw Error(ErrorCode::usage, fmt::format("a text of {} tokens cannot be run again: {} were fed", ids.size(),
                                              state.cache.length(sequence)));
  for (std::int64_t i = 0; i < std::ssize(ids); ++i) rows_.push_back({ids[i], sequence, i});
}

Tensor<float, 2> Replay::embedded() const {
  Tensor<float, 2> resid({std::ssize(rows_), model_.config().width});
  embed(model_, rows_, resid.view());
  return resid;
}

void Replay::run(std::int64_t layer, View<float, 2> resid, std::span<Reader* const> readers) {
  std::vector<std::int64_t> lengths;
  for (int s = 0; s < state_.cache.sequences(); ++s) lengths.push_back(state_.cache.length(s));
  CachedKeys keys(state_.cache, lengths);  // the keys that the rows put are there already, with the same bits
  ReadersTap tap(readers, watch_);
  Blocks blocks(model_, state_, keys, &tap);
  const std::int64_t total = std::ssize(rows_);
  for (std::int64_t first = 0; first < total; first += kChunk) {
    const std::int64_t n = std::min(kChunk, total - first);
    Stream stream{{rows_.begin() + first, rows_.begin() + first + n}, resid.slice(first, first + n)};
    blocks.run(layer, stream);
  }
}

void Replay::each_layer_down(const std::function<std::vector<Reader*>(std::int64_t layer)>& readers,
                             const std::function<void(std::int64_t layer)>& after) {
  // Inputs of layers that are kept, the uppermost last. That of layer 0 is not: embedding again costs nothing.
  std::vector<std::pair<std::int64_t, Tensor<float, 2>>> kept;
  const auto advance = [&](std::int64_t from, std::int64_t to) {
    Tensor<float, 2> resid = embedded();
    if (from > 0) std::copy_n(kept.back().second.data(), resid.size(), resid.data());
    for (std::int64_t l = from; l < to; ++l) run(l, resid.view(), {});
    kept.emplace_back(to, std::move(resid));
  };
  const auto visit = [&](std::int64_t layer) {
    Tensor<float, 2> resid = layer == 0 ? embedded() : std::move(kept.back().second);
    if (layer > 0) kept.pop_back();
    const std::vector<Reader*> attached = readers(layer);
    run(layer, resid.view(), attached);
    after(layer);
  };
  walk_down(0, model_.config().layers, slots_, advance, visit);
}

std::int64_t Replay::bytes_needed(const ModelConfig& config, std::int64_t tokens) {
  // Those kept, and one more on its way.
  return (slots(config, tokens) + 1) * tokens * config.width * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t Replay::layers_run(const ModelConfig& config, std::int64_t tokens) {
  std::int64_t run = 0;
  walk_down(
      0, config.layers, slots(config, tokens), [&](std::int64_t from, std::int64_t to) { run += to - from; },
      [&](std::int64_t) { ++run; });
  return run;
}

}  // namespace regard
