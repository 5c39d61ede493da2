#pragma once
// What an edit means for one model and one text: the cells that it writes, counted from 0.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "intervention/edit.h"
#include "intervention/run_record.h"

namespace regard {

struct Cells {
  Action action = Action::block;
  EditSite site = EditSite::edge;
  float by = 1;                     // scale
  std::uint64_t seed = 0;           // permute
  const RunRecord* from = nullptr;  // patch, freeze, mean; nothing while edits are only checked
  // All ascending. heads: query heads, or key/value heads for k and v; {0} where a site has no heads. positions: rows,
  // or the positions whose k and v they are. keys: of edges only.
  std::vector<std::int64_t> layers, heads, positions, keys;

  // What its cells count as: (layer, head, row, visible key) for edges, (layer, head, position) else. Visible is what
  // the layer's mask leaves: model/visible_keys.h.
  std::int64_t matched(const ModelConfig& config) const;
};

// The site of the model that is written (not for edge and pattern).
Site site_of(EditSite site);

// Errors, all Error{usage}: an index that is not there, a run that has no such name or position. Does not ask whether
// anything matched.
// rows: how many there may come to be where the text is the prompt of one that is being made (0: those of the text).
// Numbers count over all of them, negative ones from the end of the prompt, and what is left open holds for the rows
// that are made too. But a patch and a freeze take each position's value from a run, which ends where its text does:
// they are left open up to the end of the prompt, and may name a later position only if that run has it.
Cells resolve(const Edit& edit, const ModelConfig& config, const Runs& runs, std::int64_t rows = 0);
// Error{usage} for two edits that write the same cell, and for one that matches no cell at all.
void check(std::span<const Edit> edits, std::span<const Cells> cells, const ModelConfig& config);
bool overlap(const Cells& a, const Cells& b);

// What must be kept of each run for the edits to be made.
std::map<std::string, std::set<Site>> sites_needed(std::span<const Edit> edits);

}  // namespace regard
