#pragma once
// What one run of a model left at the sites that somebody needs later: to patch from it, to freeze it, to take its
// mean, to start a what-if from it. Memory is linear in the text: what is kept is [T, heads, channels] per site and
// layer.

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/forward.h"
#include "model/model.h"
#include "tensor/buffer.h"

namespace regard {

// What a decoder reads beside its own text: [S, C] of encode() (model/source.h). `across`: z and attn_out are kept of
// the attention that reads it, in place of the decoder's own.
struct EncodedSource {
  View<const float, 2> encoded;
  bool across = false;
};

class RunRecord {
 public:
  // Runs the text and keeps the values of `sites`; `edits`, if given, writes before they are kept. planned_length: as
  // of State, where the text is the beginning of a longer one; 0: its own. Errors: as feed().
  RunRecord(const Model& model, std::span<const std::int32_t> ids, const std::set<Site>& sites,
            Progress* progress = nullptr, Tap* edits = nullptr, std::int64_t planned_length = 0);
  // Of a decoder, with the source that it reads.
  RunRecord(const Model& model, std::span<const std::int32_t> ids, const std::set<Site>& sites,
            const EncodedSource& source, Progress* progress = nullptr, std::int64_t planned_length = 0);

  std::int64_t tokens() const { return final_resid_.shape()[0]; }
  bool has(Site site) const { return values_.contains(site); }
  // [T, heads, channels]; the site must be one of those kept.
  View<const float, 3> at(Site site, std::int64_t layer) const;
  // The residual after the last block, [T, C].
  View<const float, 2> final_resid() const { return final_resid_.view(); }
  // The mean of a site's rows, [heads * channels]; summed in double by position, rounded once.
  std::vector<float> mean(Site site, std::int64_t layer) const;

  static std::int64_t bytes_needed(const ModelConfig& config, std::int64_t tokens, const std::set<Site>& sites);

 private:
  class Recorder;
  void allocate(const ModelConfig& config, const std::set<Site>& sites);
  void run(const Model& model, State& state, std::span<const std::int32_t> ids, Progress* progress, Tap& tap);
  std::map<Site, std::vector<Tensor<float, 3>>> values_;  // by layer
  Tensor<float, 2> final_resid_;
};

// Heads and channels of a site.
std::array<std::int64_t, 2> site_shape(const ModelConfig& config, Site site);

// A run that edits may take values from, by name. "clean" is the run of the prompt without edits.
struct Run {
  std::int64_t tokens = 0;
  const RunRecord* record = nullptr;  // nothing while edits are only checked
};
using Runs = std::map<std::string, Run>;
inline constexpr const char* kClean = "clean";

}  // namespace regard
