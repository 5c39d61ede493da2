#include "reading/replay.h"

#include <algorithm>
#include <utility>

#include "model/blocks.h"
#include "model/cached_keys.h"
#include "model/forward.h"
#include "model/taps.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kChunk = 512;

// How many times the residuals of the whole text can be kept; at least once.
std::int64_t slots(const ModelConfig& config, std::int64_t tokens, std::int64_t kept_bytes = Replay::kKeptBytes) {
  const std::int64_t once = std::max<std::int64_t>(tokens * config.width, 1) * static_cast<std::int64_t>(sizeof(float));
  return std::clamp<std::int64_t>(kept_bytes / once, 1, std::max<std::int64_t>(config.layers - 1, 1));
}

// The fewest layer runs that visit n layers from the top down when the input of the lowest is at hand and s more can be
// kept: keep that of layer m, visit those above with s - 1, then those below with s again.
class Schedule {
 public:
  Schedule(std::int64_t layers, std::int64_t slots) {
    for (std::int64_t s = 0; s <= slots; ++s) {
      std::vector<std::int64_t>&runs = runs_.emplace_back(), &split = split_.emplace_back();
      for (std::int64_t n = 0; n <= layers; ++n) {
        runs.push_back(n * (n + 1) / 2);  // each from the lowest one again
        split.push_back(n - 1);
        for (std::int64_t m = 1; s > 0 && m < n; ++m) {
          const std::int64_t kept = m + runs_[s - 1][n - m] + runs[m];
          if (kept >= runs[n]) continue;
          runs[n] = kept;
          split[n] = m;
        }
      }
    }
  }
  std::int64_t runs() const { return runs_.back().back(); }

  // What is done, in order: advance(from, to) makes the input of `to` from that of `from`, which stays; visit(layer)
  // uses up the input of `layer`, the last that was made.
  template <typename Advance, typename Visit>
  void walk(std::int64_t first, std::int64_t last, std::int64_t slots, Advance&& advance, Visit&& visit) const {
    while (last - first > 1) {
      const std::int64_t middle = first + split_[slots][last - first];
      advance(first, middle);
      walk(middle, last, std::max<std::int64_t>(slots - 1, 0), advance, visit);
      last = middle;
    }
    visit(first);
  }

 private:
  std::vector<std::vector<std::int64_t>> runs_, split_;  // [slots][layers]
};

// Shows readers to a pass, and the pass to whoever watches.
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

Replay::Replay(const Model& model, State& state, std::span<const std::int32_t> ids, int sequence,
               const Options& options)
    : model_(model),
      state_(state),
      options_(options),
      slots_(slots(model.config(), std::ssize(ids), options.kept_bytes)) {
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
  ReadersTap looking(readers, options_.watch);
  Taps tap(options_.edits != nullptr ? std::vector<Tap*>{options_.edits, &looking} : std::vector<Tap*>{&looking});
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
  Schedule(model_.config().layers, slots_).walk(0, model_.config().layers, slots_, advance, visit);
}

std::int64_t Replay::bytes_needed(const ModelConfig& config, std::int64_t tokens) {
  // Those kept, and one more on its way.
  return (slots(config, tokens) + 1) * tokens * config.width * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t Replay::layers_run(const ModelConfig& config, std::int64_t tokens) {
  return Schedule(config.layers, slots(config, tokens)).runs();
}

}  // namespace regard
