#pragma once
// Makes edits while a model runs: hand it to forward(), feed() or Blocks as the tap. Each sequence of the pass may have
// edits of its own.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "intervention/cells.h"
#include "intervention/receipt.h"
#include "model/tap.h"

namespace regard {

class EditTap final : public Tap {
 public:
  // edits[s]: those of sequence s; must outlive the tap.
  EditTap(const ModelConfig& config, std::vector<std::span<const Cells>> edits);

  bool wants(Site site, std::int64_t layer) const override;
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override;
  std::span<const EdgeEdit> edges(std::int64_t layer, std::span<const Row> rows) override;
  void substitutes(std::int64_t layer, std::span<const Row> rows, const Problem& problem, bool first,
                   const std::function<void(const Substitute&)>& use) override;

  // [sequence][edit]
  const std::vector<std::vector<Receipt>>& receipts() const { return receipts_; }

 private:
  bool any(EditSite site, std::int64_t layer) const { return wanted_[layer] >> static_cast<int>(site) & 1; }
  void write(const Cells& cells, Receipt& receipt, std::int64_t layer, std::int64_t position, View<float, 2> value);
  std::span<const float> mean(const Cells& cells, std::int64_t layer);
  Substitute substitute(const Cells& cells, std::int64_t layer, std::int64_t head, std::vector<std::int64_t> rows,
                        std::span<const Row> all, const Problem& problem) const;

  const ModelConfig& config_;
  std::vector<std::span<const Cells>> edits_;
  std::vector<std::vector<Receipt>> receipts_;
  std::vector<std::uint32_t> wanted_;  // [L] bit per EditSite
  std::vector<EdgeEdit> edges_;
  std::map<std::tuple<const RunRecord*, Site, std::int64_t>, std::vector<float>> means_;
};

// Rows of one sequence (indices into `all`) that read as they did in another run; kept with rot_q and rot_k.
Substitute from_run(const RunRecord& run, const ModelConfig& config, std::int64_t layer, std::int32_t head,
                    std::vector<std::int64_t> rows, std::span<const Row> all, std::int64_t length);

}  // namespace regard
