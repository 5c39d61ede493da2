#pragma once
// How far edits moved the weights of the rows that they are about: the Jensen-Shannon divergence between the clean
// run's pattern and the edited one, per layer, head and row (Jain & Wallace 2019, who set it beside the change of the
// output: weights that differ much while the answer stays are no explanation of it).

#include <cstdint>
#include <span>
#include <vector>

#include "intervention/edit_tap.h"

namespace regard {

struct PatternDistance {
  double mean = 0, max = 0;  // in nats, over the rows of weights that edits name; at most log 2
  std::int64_t rows = 0;     // of weights: (layer, head, row)
};

// A tap that looks: give it to a run of one sequence with the edits, after the tap that makes them (model/taps.h). Both
// patterns are made by the kernel, so where an edit changes nothing the distance is exactly 0. Some rows of weights
// live at a time: memory is linear in the text. clean: kept with sites().
class PatternDistanceTap final : public Tap {
 public:
  PatternDistanceTap(const ModelConfig& config, const RunRecord& clean, std::span<const Cells> edits, EditTap& maker);
  ~PatternDistanceTap() override;
  static std::set<Site> sites() { return {Site::rot_q, Site::rot_k}; }
  // Whether an edit is about weights.
  static bool about_weights(EditSite site) { return site == EditSite::edge || site == EditSite::pattern; }

  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override;
  PatternDistance result() const;

 private:
  class Comparer;
  std::unique_ptr<Comparer> comparer_;
};

}  // namespace regard
