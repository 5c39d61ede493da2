#pragma once
// The cache as the place where rows put their keys and find those that they read.

#include <algorithm>
#include <utility>
#include <vector>

#include "model/blocks.h"
#include "model/state.h"

namespace regard {

class CachedKeys final : public KeyStore {
 public:
  // lengths: of every sequence, the rows that pass included; room must be reserved. source: null without an encoder.
  CachedKeys(KeyValueCache& cache, std::vector<std::int64_t> lengths, const KeyValueCache* source = nullptr)
      : cache_(cache), lengths_(std::move(lengths)), source_(source) {}
  void put(std::int64_t layer, std::span<const Row> rows, View<const float, 3> k, View<const float, 3> v) override {
    for (std::int64_t r = 0; r < std::ssize(rows); ++r) {
      const Row& row = rows[r];
      std::copy_n(k[r].data, k.shape[1] * k.shape[2], cache_.key(row.sequence, layer, row.position));
      std::copy_n(v[r].data, v.shape[1] * v.shape[2], cache_.value(row.sequence, layer, row.position));
    }
  }
  std::vector<Sequence> sequences(std::int64_t layer) override {
    std::vector<Sequence> sequences;
    for (int s = 0; s < cache_.sequences(); ++s) sequences.push_back(cache_.view(s, layer, lengths_[s]));
    return sequences;
  }
  std::vector<Sequence> sources(std::int64_t layer) override {
    std::vector<Sequence> sources;
    for (int s = 0; source_ != nullptr && s < source_->sequences(); ++s)
      sources.push_back(source_->view(s, layer, source_->length(s)));
    return sources;
  }

 private:
  KeyValueCache& cache_;
  std::vector<std::int64_t> lengths_;
  const KeyValueCache* source_;
};

}  // namespace regard
