#include "intervention/edit_tap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "intervention/permutation.h"

namespace regard {
namespace {

bool holds(const std::vector<std::int64_t>& ascending, std::int64_t i) {
  return std::binary_search(ascending.begin(), ascending.end(), i);
}

}  // namespace

EditTap::EditTap(const ModelConfig& config, std::vector<std::span<const Cells>> edits)
    : config_(config), edits_(std::move(edits)), wanted_(static_cast<std::size_t>(config.layers)) {
  for (const std::span<const Cells> mine : edits_) {
    std::vector<Receipt>& receipts = receipts_.emplace_back();
    for (const Cells& cells : mine) {
      receipts.push_back({.matched = cells.matched(config), .changed = 0, .passed = 0});
      for (const std::int64_t layer : cells.layers) wanted_[layer] |= 1u << static_cast<int>(cells.site);
    }
  }
}

bool EditTap::wants(Site site, std::int64_t layer) const {
  for (const EditSite own : {EditSite::q, EditSite::k, EditSite::v, EditSite::z, EditSite::attn_out, EditSite::mlp_out,
                             EditSite::resid_pre, EditSite::resid_post})
    if (site_of(own) == site) return any(own, layer);
  return false;
}

void EditTap::at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto edits = edits_[rows[r].sequence];
    for (std::size_t e = 0; e < edits.size(); ++e) {
      const Cells& cells = edits[e];
      if (cells.site == EditSite::edge || cells.site == EditSite::pattern || site_of(cells.site) != site) continue;
      if (!holds(cells.positions, rows[r].position) || !holds(cells.layers, layer)) continue;
      write(cells, receipts_[rows[r].sequence][e], layer, rows[r].position, value[static_cast<std::int64_t>(r)]);
    }
  }
}

// value: [heads, channels] of one row.
void EditTap::write(const Cells& cells, Receipt& receipt, std::int64_t layer, std::int64_t position,
                    View<float, 2> value) {
  const Site site = site_of(cells.site);
  for (const std::int64_t head : cells.heads) {
    bool changed = false;
    const float* from = nullptr;
    if (cells.action == Action::patch) from = &cells.from->at(site, layer)(position, head, 0);
    if (cells.action == Action::mean) from = mean(cells, layer).data() + head * value.shape[1];
    for (std::int64_t c = 0; c < value.shape[1]; ++c) {
      float& x = value(head, c);
      const float now = cells.action == Action::zero ? 0.0f : cells.action == Action::scale ? x * cells.by : from[c];
      changed |= std::memcmp(&now, &x, sizeof(float)) != 0;
      x = now;
    }
    receipt.changed += changed;
    ++receipt.passed;
  }
}

std::span<const float> EditTap::mean(const Cells& cells, std::int64_t layer) {
  const auto key = std::tuple(cells.from, site_of(cells.site), layer);
  const auto found = means_.find(key);
  if (found != means_.end()) return found->second;
  return means_[key] = cells.from->mean(site_of(cells.site), layer);
}

std::span<const EdgeEdit> EditTap::edges(std::int64_t layer, std::span<const Row> rows) {
  edges_.clear();
  if (!any(EditSite::edge, layer)) return {};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto edits = edits_[rows[r].sequence];
    const std::int64_t row = rows[r].position, first = first_visible(config_, layer, row);
    const std::size_t begin = edges_.size();
    for (std::size_t e = 0; e < edits.size(); ++e) {
      const Cells& cells = edits[e];
      if (cells.site != EditSite::edge || !holds(cells.positions, row) || !holds(cells.layers, layer)) continue;
      const float add = cells.action == Action::block ? -std::numeric_limits<float>::infinity()
                                                      : static_cast<float>(std::log(static_cast<double>(cells.by)));
      Receipt& receipt = receipts_[rows[r].sequence][e];
      const auto low = std::lower_bound(cells.keys.begin(), cells.keys.end(), first);
      const auto high = std::upper_bound(low, cells.keys.end(), row);
      receipt.passed += (high - low) * std::ssize(cells.heads);
      if (add != 0) receipt.changed += (high - low) * std::ssize(cells.heads);
      for (const std::int64_t head : cells.heads) {
        for (auto key = low; key != high;) {  // runs of neighbours
          const std::int64_t begin_key = *key;
          std::int64_t end_key = begin_key;
          for (; key != high && *key == end_key; ++key) ++end_key;
          edges_.push_back({static_cast<std::int64_t>(r), static_cast<std::int32_t>(head), begin_key, end_key, add});
        }
      }
    }
    std::sort(edges_.begin() + static_cast<std::ptrdiff_t>(begin), edges_.end(),
              [](const EdgeEdit& a, const EdgeEdit& b) {
                return std::pair(a.head, a.key_begin) < std::pair(b.head, b.key_begin);
              });
  }
  return edges_;
}

std::span<const Substitute> EditTap::substitutes(std::int64_t layer, std::span<const Row> rows,
                                                 const Problem& problem) {
  substitutes_.clear();
  if (!any(EditSite::pattern, layer)) return {};
  for (std::size_t first = 0, end = 0; first < rows.size(); first = end) {  // a run of rows of one sequence
    const std::int32_t sequence = rows[first].sequence;
    while (end < rows.size() && rows[end].sequence == sequence) ++end;
    for (std::size_t e = 0; e < edits_[sequence].size(); ++e) {
      const Cells& cells = edits_[sequence][e];
      if (cells.site != EditSite::pattern || !holds(cells.layers, layer)) continue;
      std::vector<std::int64_t> mine;
      for (std::size_t r = first; r < end; ++r)
        if (holds(cells.positions, rows[r].position)) mine.push_back(static_cast<std::int64_t>(r));
      if (mine.empty()) continue;
      for (const std::int64_t head : cells.heads) {
        Receipt& receipt = receipts_[sequence][e];
        receipt.passed += std::ssize(mine);
        const std::size_t begin = substitutes_.size();
        if (cells.action == Action::permute) {  // another order of keys for each row
          for (const std::int64_t row : mine)
            substitutes_.push_back(substitute(cells, layer, head, {row}, rows, problem));
        } else {
          substitutes_.push_back(substitute(cells, layer, head, mine, rows, problem));
        }
        for (std::size_t s = begin; s < substitutes_.size(); ++s) substitutes_[s].changed = &receipt.changed;
      }
    }
  }
  return substitutes_;
}

Substitute EditTap::substitute(const Cells& cells, std::int64_t layer, std::int64_t head,
                               std::vector<std::int64_t> rows, std::span<const Row> all, const Problem& problem) const {
  const std::int64_t D = config_.head_dim, kv_head = head / (config_.heads / config_.kv_heads);
  const Sequence& sequence = problem.sequences[all[rows[0]].sequence];
  Substitute made;
  made.head = static_cast<std::int32_t>(head);
  const auto take_query = [&](const float* q) { made.q.insert(made.q.end(), q, q + D); };
  Rows keys{.dtype = DType::f32,
            .pages = nullptr,
            .page_rows = 1,
            .row_stride = 0,
            .head_stride = 0,
            .inner_stride = sizeof(float)};
  std::vector<const std::byte*> pages;
  switch (cells.action) {
    case Action::uniform: {  // q . k = 0 for every key
      static const std::vector<float> kZeros(512);
      made.q.assign(rows.size() * static_cast<std::size_t>(D), 0.0f);
      made.sink = false;
      pages.assign(static_cast<std::size_t>(sequence.length), reinterpret_cast<const std::byte*>(kZeros.data()));
      break;
    }
    case Action::permute: {
      const Row& row = all[rows[0]];
      const std::int64_t begin = first_visible(config_, layer, row.position);
      const auto order = permutation(cells.seed, layer, head, row.position, row.position + 1 - begin);
      for (std::int64_t d = 0; d < D; ++d) made.q.push_back(problem.q(rows[0], head, d));
      keys.inner_stride = sequence.k.inner_stride;
      for (std::int64_t j = 0; j < sequence.length; ++j) {
        const std::int64_t from = j < begin || j > row.position ? j : begin + order[j - begin];
        pages.push_back(sequence.k.row(from) + kv_head * sequence.k.head_stride);
      }
      break;
    }
    default: {  // the weights of another run, from its queries and keys
      const auto q = cells.from->at(Site::rot_q, layer), k = cells.from->at(Site::rot_k, layer);
      for (const std::int64_t r : rows) take_query(&q(all[r].position, head, 0));
      for (std::int64_t j = 0; j < sequence.length; ++j)  // keys that the run lacks are hidden from these rows
        pages.push_back(reinterpret_cast<const std::byte*>(&k(std::min(j, cells.from->tokens() - 1), kv_head, 0)));
      break;
    }
  }
  made.rows = std::move(rows);
  made.k.rows = keys;
  made.k.pages = std::move(pages);
  return made;
}

}  // namespace regard
