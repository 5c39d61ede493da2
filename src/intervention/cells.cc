#include "intervention/cells.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "model/visible_keys.h"
#include "reading/selection.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kAnyLength = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> chosen(const Edit& edit, Selector selector, std::int64_t count,
                                 std::optional<std::int64_t> prompt = {}) {
  const auto& text = edit.at(selector);
  try {
    std::vector<std::int64_t> indices = select(text ? std::string_view(*text) : "*", count, name(selector), prompt);
    std::sort(indices.begin(), indices.end());
    return indices;
  } catch (const Error& error) {
    throw Error(error.code, fmt::format("edit '{}': {}", to_string(edit), error.message), error.hint);
  }
}

bool meet(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) return true;
    *i < *j ? ++i : ++j;
  }
  return false;
}

// What a layer's output is to the next one: its input. So both spellings of a cell are found to be one.
std::vector<std::int64_t> layers_as_input(const Cells& cells) {
  std::vector<std::int64_t> layers = cells.layers;
  if (cells.site == EditSite::resid_post)
    for (std::int64_t& layer : layers) ++layer;
  return layers;
}

const Run& run_of(const Edit& edit, const Runs& runs) {
  const auto found = runs.find(edit.from.empty() ? kClean : edit.from);
  if (found != runs.end()) return found->second;
  std::string names;
  for (const auto& [name, run] : runs) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::usage, fmt::format("edit '{}': there is no run '{}'", to_string(edit), edit.from),
              fmt::format("runs are {}; name another with --run {}=TEXT{}", names, edit.from,
                          edit.from == "contrast" ? " or --contrast TEXT" : ""));
}

// Whether each position's value is the one that a run had there.
bool place_by_place(const Edit& edit) { return edit.action == Action::patch || edit.action == Action::freeze; }

// What is read, or reads, at a place in the text.
Selector place(EditSite site) { return has(site, Selector::row) ? Selector::row : Selector::key; }

// A patch takes the value at the same place; in a run of another length that must be a place somebody chose.
void check_positions(const Edit& edit, const Cells& cells, const ModelConfig& config, std::int64_t tokens,
                     const Run& run) {
  if (!place_by_place(edit)) return;
  if (run.tokens != tokens && edit.site == EditSite::pattern && !config.causal)  // its rows read to the end of the text
    throw Error(ErrorCode::usage,
                fmt::format("edit '{}': the run '{}' has {} tokens and this one {}, and every row of {} reads the "
                            "whole text: there is no place for its weights",
                            to_string(edit), edit.from, run.tokens, tokens, config.family),
                "choose a text of as many tokens");
  const Selector selector = place(edit.site);
  const auto& text = edit.at(selector);
  if (run.tokens != tokens && (!text || open_ended(*text)))
    throw Error(ErrorCode::usage,
                fmt::format("edit '{}': the run '{}' has {} tokens and this one {}", to_string(edit), edit.from,
                            run.tokens, tokens),
                fmt::format("name the positions: {}=", name(selector)));
  if (cells.positions.back() >= run.tokens)
    throw Error(ErrorCode::usage,
                fmt::format("edit '{}': the run '{}' has no position {}", to_string(edit),
                            edit.from.empty() ? kClean : edit.from, cells.positions.back()),
                fmt::format("its text has {} tokens", run.tokens));
}

}  // namespace

Site site_of(EditSite site) {
  switch (site) {
    case EditSite::q:
      return Site::rot_q;
    case EditSite::k:
      return Site::rot_k;
    case EditSite::v:
      return Site::v;
    case EditSite::z:
      return Site::z;
    case EditSite::attn_out:
      return Site::attn_out;
    case EditSite::mlp_out:
      return Site::mlp_out;
    case EditSite::resid_pre:
      return Site::resid_pre;
    case EditSite::resid_post:
      return Site::resid_post;
    case EditSite::edge:
    case EditSite::pattern:
      break;
  }
  return Site::pattern;
}

std::int64_t Cells::matched(const ModelConfig& config) const {
  const std::int64_t per_layer = std::ssize(heads) * std::ssize(positions);
  if (site != EditSite::edge) return std::ssize(layers) * per_layer;
  std::int64_t edges = 0;
  for (const std::int64_t layer : layers)
    for (const std::int64_t row : positions) {
      const KeyRange visible = visible_keys(config, layer, row, kAnyLength);  // keys are those of the text already
      edges += std::lower_bound(keys.begin(), keys.end(), visible.end) -
               std::lower_bound(keys.begin(), keys.end(), visible.begin);
    }
  return edges * std::ssize(heads);
}

Cells resolve(const Edit& edit, const ModelConfig& config, const Runs& runs, std::int64_t rows) {
  const std::int64_t tokens = runs.at(kClean).tokens, longest = std::max(tokens, rows);
  const Run& run = run_of(edit, runs);
  Cells cells{.action = edit.action,
              .site = edit.site,
              .by = static_cast<float>(edit.by),
              .seed = edit.seed,
              .from = run.record,
              .layers = chosen(edit, Selector::layer, config.layers),
              .heads = {0},
              .positions = {},
              .keys = {}};
  if (has(edit.site, Selector::head)) cells.heads = chosen(edit, Selector::head, config.heads);
  if (has(edit.site, Selector::kv_head)) cells.heads = chosen(edit, Selector::kv_head, config.kv_heads);
  const Selector selector = place(edit.site);
  const auto& text = edit.at(selector);
  const bool ends_with_prompt = place_by_place(edit) && run.tokens == tokens && (!text || open_ended(*text));
  cells.positions = chosen(edit, selector, ends_with_prompt ? tokens : longest, tokens);
  if (edit.site == EditSite::edge) cells.keys = chosen(edit, Selector::key, longest, tokens);
  check_positions(edit, cells, config, tokens, run);
  return cells;
}

bool overlap(const Cells& a, const Cells& b) {
  const auto kind = [](EditSite site) { return site == EditSite::resid_post ? EditSite::resid_pre : site; };
  const bool weights = (a.site == EditSite::edge && b.site == EditSite::pattern) ||
                       (a.site == EditSite::pattern && b.site == EditSite::edge);
  if (kind(a.site) != kind(b.site) && !weights) return false;
  if (!meet(layers_as_input(a), layers_as_input(b)) || !meet(a.heads, b.heads) || !meet(a.positions, b.positions))
    return false;
  return a.site != EditSite::edge || b.site != EditSite::edge || meet(a.keys, b.keys);
}

void check(std::span<const Edit> edits, std::span<const Cells> cells, const ModelConfig& config) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].matched(config) == 0)
      throw Error(ErrorCode::usage, fmt::format("edit '{}' matches nothing", to_string(edits[i])),
                  config.causal ? "a row reads itself and what comes before it, in layers with a window only the last "
                                  "of that: the mask hides these edges already"
                                : "a row reads the whole text, in layers with a window only what is near: the mask "
                                  "hides these edges already");
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(cells[i], cells[j]))
        throw Error(ErrorCode::usage,
                    fmt::format("edits '{}' and '{}' write the same cell", to_string(edits[j]), to_string(edits[i])),
                    "let each cell be written by one edit");
  }
}

std::map<std::string, std::set<Site>> sites_needed(std::span<const Edit> edits) {
  std::map<std::string, std::set<Site>> needed;
  for (const Edit& edit : edits) {
    if (edit.action != Action::patch && edit.action != Action::mean && edit.action != Action::freeze) continue;
    std::set<Site>& sites = needed[edit.from.empty() ? kClean : edit.from];
    if (edit.site == EditSite::pattern) {
      sites.insert({Site::rot_q, Site::rot_k});
    } else {
      sites.insert(site_of(edit.site));
    }
  }
  return needed;
}

}  // namespace regard
