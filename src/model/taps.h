#pragma once
// Several taps as one: each sees what those before it wrote, so those that edit come first and those that look last.

#include <vector>

#include "model/tap.h"
#include "tensor/error.h"

namespace regard {

class Taps final : public Tap {
 public:
  explicit Taps(std::vector<Tap*> taps) : taps_(std::move(taps)) {}

  bool wants(Site site, std::int64_t layer) const override {
    for (const Tap* tap : taps_)
      if (tap->wants(site, layer)) return true;
    return false;
  }
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override {
    for (Tap* tap : taps_)
      if (tap->wants(site, layer)) tap->at(site, layer, rows, value);
  }
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override {
    std::vector<Reader*> all;
    for (Tap* tap : taps_)
      for (Reader* reader : tap->readers(layer, rows)) all.push_back(reader);
    return all;
  }
  // Scores are changed by one tap at most. Error{usage} for a second one.
  std::span<const EdgeEdit> edges(std::int64_t layer, std::span<const Row> rows) override {
    std::span<const EdgeEdit> all;
    for (Tap* tap : taps_) {
      const auto edges = tap->edges(layer, rows);
      if (!all.empty() && !edges.empty()) throw Error(ErrorCode::usage, "two taps change the same scores");
      if (!edges.empty()) all = edges;
    }
    return all;
  }
  std::vector<Reader*> cross_readers(std::int64_t layer, std::span<const Row> rows) override {
    std::vector<Reader*> all;
    for (Tap* tap : taps_)
      for (Reader* reader : tap->cross_readers(layer, rows)) all.push_back(reader);
    return all;
  }
  std::span<const EdgeEdit> cross_edges(std::int64_t layer, std::span<const Row> rows) override {
    std::span<const EdgeEdit> all;
    for (Tap* tap : taps_) {
      const auto edges = tap->cross_edges(layer, rows);
      if (!all.empty() && !edges.empty()) throw Error(ErrorCode::usage, "two taps change the same scores");
      if (!edges.empty()) all = edges;
    }
    return all;
  }
  void substitutes(std::int64_t layer, std::span<const Row> rows, const Problem& problem, bool first,
                   const std::function<void(const Substitute&)>& use) override {
    for (Tap* tap : taps_)
      if (tap->wants(Site::pattern, layer)) tap->substitutes(layer, rows, problem, first, use);
  }

 private:
  std::vector<Tap*> taps_;
};

}  // namespace regard
