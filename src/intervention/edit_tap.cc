#include "intervention/edit_tap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "intervention/permutation.h"
#include "model/visible_keys.h"
#include "tensor/error.h"

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
  if (site == Site::pattern) return any(EditSite::pattern, layer);
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
    const std::int64_t row = rows[r].position;
    const KeyRange visible = visible_keys(config_, layer, row, std::numeric_limits<std::int64_t>::max());
    const std::size_t begin = edges_.size();
    for (std::size_t e = 0; e < edits.size(); ++e) {
      const Cells& cells = edits[e];
      if (cells.site != EditSite::edge || !holds(cells.positions, row) || !holds(cells.layers, layer)) continue;
      const float add = cells.action == Action::block ? -std::numeric_limits<float>::infinity()
                                                      : static_cast<float>(std::log(static_cast<double>(cells.by)));
      Receipt& receipt = receipts_[rows[r].sequence][e];
      const auto low = std::lower_bound(cells.keys.begin(), cells.keys.end(), visible.begin);
      const auto high = std::lower_bound(low, cells.keys.end(), visible.end);
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

void EditTap::substitutes(std::int64_t layer, std::span<const Row> rows, const Problem& problem, bool first,
                          const std::function<void(const Substitute&)>& use) {
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {  // a run of rows of one sequence
    const std::int32_t sequence = rows[begin].sequence;
    while (end < rows.size() && rows[end].sequence == sequence) ++end;
    for (std::size_t e = 0; e < edits_[sequence].size(); ++e) {
      const Cells& cells = edits_[sequence][e];
      if (cells.site != EditSite::pattern || !holds(cells.layers, layer)) continue;
      std::vector<std::int64_t> mine;
      for (std::size_t r = begin; r < end; ++r)
        if (holds(cells.positions, rows[r].position)) mine.push_back(static_cast<std::int64_t>(r));
      if (mine.empty()) continue;
      Receipt& receipt = receipts_[sequence][e];
      if (first) receipt.passed += std::ssize(mine) * std::ssize(cells.heads);
      const auto hand_on = [&](std::int64_t head, std::vector<std::int64_t> which) {
        Substitute made = substitute(cells, layer, head, std::move(which), rows, problem);
        if (first) made.changed = &receipt.changed;
        use(made);
      };
      for (const std::int64_t head : cells.heads) {
        if (cells.action == Action::permute) {  // another order of keys for each row
          for (const std::int64_t row : mine) hand_on(head, {row});
        } else {
          hand_on(head, mine);
        }
      }
    }
  }
}

Substitute EditTap::substitute(const Cells& cells, std::int64_t layer, std::int64_t head,
                               std::vector<std::int64_t> rows, std::span<const Row> all, const Problem& problem) const {
  const Sequence& sequence = problem.sequences[all[rows[0]].sequence];
  const auto h = static_cast<std::int32_t>(head);
  if (cells.action == Action::permute) {
    if (problem.mask.bias.data != nullptr)
      throw Error(ErrorCode::unsupported,
                  fmt::format("patterns of {} cannot be permuted: their scores hang on the distance", config_.family));
    const std::int64_t row = all[rows[0]].position;
    const KeyRange visible = visible_keys(config_, layer, row, sequence.length);
    Substitute made = unchanged(problem, h, std::move(rows));
    const auto order = permutation(cells.seed, layer, head, row, visible.end - visible.begin);
    const OneHeadRows keys = std::move(made.k);
    made.k.rows = keys.rows;
    made.k.rows.page_rows = 1;
    const Rows from = keys.view();
    for (std::int64_t j = 0; j < sequence.length; ++j)
      made.k.pages.push_back(
          from.row(j < visible.begin || j >= visible.end ? j : visible.begin + order[j - visible.begin]));
    return made;
  }
  if (cells.action != Action::uniform)
    return from_run(*cells.from, config_, layer, h, std::move(rows), all, sequence.length);
  // q . k = 0 for every key; one key of zeros is all keys.
  static const std::vector<float> kZeros(512);  // as many channels as attention takes
  Substitute made;
  made.head = h;
  made.q.assign(rows.size() * static_cast<std::size_t>(config_.head_dim), 0.0f);
  made.sink = made.bias = false;
  made.k.pages = {reinterpret_cast<const std::byte*>(kZeros.data())};
  made.k.rows = {DType::f32, nullptr, std::max<std::int64_t>(1, sequence.length), 0, 0, sizeof(float)};
  made.rows = std::move(rows);
  return made;
}

Substitute from_run(const RunRecord& run, const ModelConfig& config, std::int64_t layer, std::int32_t head,
                    std::vector<std::int64_t> rows, std::span<const Row> all, std::int64_t length) {
  const auto q = run.at(Site::rot_q, layer), k = run.at(Site::rot_k, layer);
  const std::int64_t kv_head = head / (config.heads / config.kv_heads);
  Substitute made;
  made.head = head;
  for (const std::int64_t r : rows) {
    const float* from = &q(all[r].position, head, 0);
    made.q.insert(made.q.end(), from, from + config.head_dim);
  }
  made.k.rows = {DType::f32, nullptr, 1, 0, 0, sizeof(float)};
  for (std::int64_t j = 0; j < length; ++j)  // keys that the run lacks are hidden from these rows
    made.k.pages.push_back(reinterpret_cast<const std::byte*>(&k(std::min(j, run.tokens() - 1), kv_head, 0)));
  made.rows = std::move(rows);
  return made;
}

}  // namespace regard
