#pragma once
// The tiny random Llama, written to a file of its own and loaded as any other model.

#include <unistd.h>

#include <filesystem>
#include <string>

#include "model/forward.h"
#include "support/tiny_llama.h"

namespace regard::testing {

// A file that is gone when the test is.
class TinyModelFile {
 public:
  explicit TinyModelFile(const TinyLlama& tiny = {}) : TinyModelFile(tiny_llama(tiny)) {}
  explicit TinyModelFile(const GgufWriter& writer) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("regard-tiny-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".gguf");
    writer.write(path_);
  }
  ~TinyModelFile() { std::filesystem::remove(path_); }
  TinyModelFile(const TinyModelFile&) = delete;
  TinyModelFile& operator=(const TinyModelFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Token ids of no particular meaning.
inline std::vector<std::int32_t> some_ids(std::int64_t n, std::int64_t vocabulary, std::uint32_t seed = 1) {
  std::mt19937 bits(seed);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<std::int32_t>(bits() % static_cast<std::uint32_t>(vocabulary)));
  return ids;
}

// Logits of every row, fed in chunks.
inline std::vector<float> all_logits(const Model& model, State& state, std::span<const std::int32_t> ids,
                                     std::int64_t chunk, int sequence = 0, Tap* tap = nullptr) {
  std::vector<float> all;
  FeedOptions options;
  options.chunk = chunk;
  options.tap = tap;
  options.on_rows = [&](std::int64_t, View<const float, 2> resid) {
    Tensor<float, 2> out({resid.shape[0], model.config().vocabulary});
    logits(model, resid, out.view());
    all.insert(all.end(), out.data(), out.data() + out.size());
  };
  feed(model, state, ids, sequence, options);
  return all;
}

}  // namespace regard::testing
