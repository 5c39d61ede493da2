#include "intervention/run_record.h"

#include <algorithm>

#include "intervention/across_tap.h"
#include "model/source.h"
#include "model/taps.h"

namespace regard {

class RunRecord::Recorder final : public Tap {
 public:
  explicit Recorder(RunRecord& record) : record_(record) {}
  bool wants(Site site, std::int64_t) const override { return record_.has(site); }
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override {
    Tensor<float, 3>& kept = record_.values_.at(site)[layer];
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        std::copy_n(&value(r, h, 0), value.shape[2], &kept(rows[r].position, h, 0));
  }

 private:
  RunRecord& record_;
};

RunRecord::RunRecord(const Model& model, std::span<const std::int32_t> ids, const std::set<Site>& sites,
                     Progress* progress, Tap* edits, std::int64_t planned_length)
    : final_resid_({std::ssize(ids), model.config().width}) {
  allocate(model.config(), sites);
  Recorder recorder(*this);
  Taps taps(edits != nullptr ? std::vector<Tap*>{edits, &recorder} : std::vector<Tap*>{&recorder});
  State state(model.config(), 1, planned_length > 0 ? planned_length : tokens());
  run(model, state, ids, progress, taps);
}

RunRecord::RunRecord(const Model& model, std::span<const std::int32_t> ids, const std::set<Site>& sites,
                     const EncodedSource& source, Progress* progress, std::int64_t planned_length)
    : final_resid_({std::ssize(ids), model.config().width}) {
  allocate(model.config(), sites);
  Recorder recorder(*this);
  AcrossTap across(recorder);
  State state(model.config(), 1, planned_length > 0 ? planned_length : tokens());
  set_source(model, state, source.encoded);
  run(model, state, ids, progress, source.across ? static_cast<Tap&>(across) : recorder);
}

void RunRecord::allocate(const ModelConfig& config, const std::set<Site>& sites) {
  for (const Site site : sites) {
    const auto [heads, channels] = site_shape(config, site);
    for (std::int64_t l = 0; l < config.layers; ++l) values_[site].emplace_back(std::array{tokens(), heads, channels});
  }
}

void RunRecord::run(const Model& model, State& state, std::span<const std::int32_t> ids, Progress* progress, Tap& tap) {
  feed(model, state, ids, 0,
       {.tap = &tap, .progress = progress, .on_rows = [&](std::int64_t first, View<const float, 2> resid) {
          std::copy_n(resid.data, resid.size(), &final_resid_(first, 0));
        }});
}

View<const float, 3> RunRecord::at(Site site, std::int64_t layer) const { return values_.at(site)[layer].view(); }

std::vector<float> RunRecord::mean(Site site, std::int64_t layer) const {
  const Tensor<float, 3>& kept = values_.at(site)[layer];
  const std::int64_t channels = kept.shape()[1] * kept.shape()[2];
  std::vector<double> sum(static_cast<std::size_t>(channels));
  for (std::int64_t t = 0; t < tokens(); ++t)
    for (std::int64_t c = 0; c < channels; ++c) sum[c] += kept.data()[t * channels + c];
  std::vector<float> mean;
  for (const double s : sum) mean.push_back(static_cast<float>(s / static_cast<double>(tokens())));
  return mean;
}

std::int64_t RunRecord::bytes_needed(const ModelConfig& config, std::int64_t tokens, const std::set<Site>& sites) {
  std::int64_t floats = config.width;
  for (const Site site : sites) {
    const auto [heads, channels] = site_shape(config, site);
    floats += config.layers * heads * channels;
  }
  return tokens * floats * static_cast<std::int64_t>(sizeof(float)) + KeyValueCache::bytes_for(config, tokens);
}

std::array<std::int64_t, 2> site_shape(const ModelConfig& c, Site site) {
  switch (site) {
    case Site::q:
    case Site::rot_q:
      return {c.heads, c.head_dim};
    case Site::k:
    case Site::rot_k:
      return {c.kv_heads, c.head_dim};
    case Site::v:
      return {c.kv_heads, c.value_dim};
    case Site::z:
      return {c.heads, c.value_dim};
    case Site::result:
      return {c.heads, c.width};
    case Site::mlp_post:
      return {1, c.hidden};
    default:
      return {1, c.width};
  }
}

}  // namespace regard
