#pragma once
// The small random models of tests/data/families (README.md there), and what a run of one shows.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/forward.h"
#include "weights/safetensors.h"

namespace regard::testing {

inline std::filesystem::path families_folder() { return std::filesystem::path(REGARD_TEST_DATA) / "families"; }

inline std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(families_folder()))
    if (std::filesystem::exists(entry.path() / "expected.safetensors")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Expected values by the names README.md gives, in double.
class Expected {
 public:
  explicit Expected(const std::string& family)
      : files_(read_safetensors(families_folder() / family / "expected.safetensors")) {
    const auto encoder = families_folder() / family / "expected_encoder.safetensors";
    if (!std::filesystem::exists(encoder)) return;
    encoder_ = read_safetensors(encoder);
    files_.tensors.insert(encoder_.tensors.begin(), encoder_.tensors.end());
  }

  bool has(const std::string& name) const { return files_.tensors.contains(name); }
  // The public implementation's own float32 error at that kind of site.
  double err32(const std::string& kind) const { return std::stod(files_.metadata.at("err32_" + kind)); }
  std::vector<std::int32_t> ids(const std::string& name) const {
    const auto wide = raw<std::int64_t>(name);
    return {wide.begin(), wide.end()};
  }
  // A pattern is [H, T, S], whichever way it is stored.
  std::vector<double> values(const std::string& name) const {
    const StoredTensor& tensor = files_.tensors.at(name);
    if (tensor.format == "F64") return raw<double>(name);
    const auto stored = raw<std::int32_t>(name);
    const auto heads = static_cast<std::size_t>(tensor.shape[0]);
    const bool triangle = tensor.shape.size() == 2;
    const std::size_t tokens = ids(has("ids") ? "ids" : "target_ids").size();  // as many in source and target
    std::vector<double> all(heads * tokens * tokens);
    std::size_t next = 0;
    for (std::size_t row = 0; row < heads * tokens; ++row)
      for (std::size_t key = 0; key < (triangle ? row % tokens + 1 : tokens); ++key)
        all[row * tokens + key] = 0x1p-30 * stored.at(next++);
    return all;
  }

 private:
  template <typename T>
  std::vector<T> raw(const std::string& name) const {
    const StoredTensor& tensor = files_.tensors.at(name);
    std::vector<T> values(static_cast<std::size_t>(tensor.bytes) / sizeof(T));
    std::memcpy(values.data(), tensor.data, values.size() * sizeof(T));
    return values;
  }
  SafetensorsFiles files_, encoder_;
};

// Every site and pattern of a run, by name; whatever the chunks, the same layout.
class Recorder : public Tap {
 public:
  // tokens: of the text and, where the model reads one, of the source.
  Recorder(const Model& model, std::int64_t tokens, std::string prefix) : prefix_(std::move(prefix)) {
    for (std::int64_t l = 0; l < model.config().layers; ++l) {
      patterns_.emplace_back(model.config().heads, tokens);
      if (model.config().cross_attention) cross_patterns_.emplace_back(model.config().heads, tokens);
    }
  }
  bool wants(Site site, std::int64_t) const override { return site != Site::result; }
  void at(Site site, std::int64_t layer, std::span<const Row>, View<float, 3> value) override {
    std::vector<float>& kept = sites_[prefix_ + std::to_string(layer) + "." + std::string(name(site))];
    for (std::int64_t r = 0; r < value.shape[0]; ++r)
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        for (std::int64_t c = 0; c < value.shape[2]; ++c) kept.push_back(value(r, h, c));
  }
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row>) override { return {&patterns_[layer]}; }
  std::vector<Reader*> cross_readers(std::int64_t layer, std::span<const Row>) override {
    return {&cross_patterns_[layer]};
  }

  // With the patterns, [H, T, S].
  std::map<std::string, std::vector<float>> all() const {
    auto values = sites_;
    for (std::size_t l = 0; l < patterns_.size(); ++l)
      values[prefix_ + std::to_string(l) + ".pattern"] = patterns_[l].weights;
    for (std::size_t l = 0; l < cross_patterns_.size(); ++l)
      values[prefix_ + std::to_string(l) + ".cross_pattern"] = cross_patterns_[l].weights;
    return values;
  }

 private:
  struct Pattern : Reader {
    Pattern(std::int64_t heads, std::int64_t tokens)
        : tokens(tokens), weights(static_cast<std::size_t>(heads * tokens * tokens)) {}
    void begin(const Problem& seen, int) override { problem = &seen; }
    void tile(const WeightTile& tile, int) override {
      for (int lane = 0; lane < tile.lanes; ++lane) {
        const std::int64_t row = problem->rows[tile.row[lane]].position;
        float* out = &weights[static_cast<std::size_t>((tile.head[lane] * tokens + row) * tokens + tile.key_begin)];
        for (std::int64_t key = 0; key < tile.keys; ++key) out[key] = tile.weight[key * tile.stride + lane];
      }
    }
    std::int64_t tokens;
    const Problem* problem = nullptr;
    std::vector<float> weights;
  };
  std::map<std::string, std::vector<float>> sites_;
  std::vector<Pattern> patterns_, cross_patterns_;
  std::string prefix_;
};

}  // namespace regard::testing
