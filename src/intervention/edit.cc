#include "intervention/edit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::array<std::string_view, 8> kActions = {"block", "scale",  "zero",    "mean",
                                                      "patch", "freeze", "uniform", "permute"};
constexpr std::array<std::string_view, 10> kSites = {"edge", "pattern",  "q",       "k",         "v",
                                                     "z",    "attn_out", "mlp_out", "resid_pre", "resid_post"};
constexpr std::array<std::string_view, kSelectors> kSelectorNames = {"layer", "head", "kv_head", "row", "key"};

// The table of FACES.md.
bool allowed(Action action, EditSite site) {
  using S = EditSite;
  switch (action) {
    case Action::block:
      return site == S::edge;
    case Action::scale:
      return site == S::edge || site == S::z || site == S::attn_out || site == S::mlp_out || site == S::v;
    case Action::zero:
    case Action::mean:
      return site != S::edge && site != S::pattern && site != S::q && site != S::k;
    case Action::patch:
      return site != S::edge;
    case Action::freeze:
    case Action::uniform:
    case Action::permute:
      return site == S::pattern;
  }
  return false;
}

template <typename Names>
std::string listed(const Names& names) {
  std::string text;
  for (std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

template <std::size_t N>
int index_of(const std::array<std::string_view, N>& names, std::string_view word) {
  const auto found = std::find(names.begin(), names.end(), word);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r";
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpace, end);
  }
  return words;
}

std::string sites_for(Action action) {
  std::vector<std::string_view> sites;
  for (std::size_t i = 0; i < kSites.size(); ++i)
    if (allowed(action, static_cast<EditSite>(i))) sites.push_back(kSites[i]);
  return listed(sites);
}

[[noreturn]] void refuse(std::string_view edit, std::string problem, std::string hint) {
  throw Error(ErrorCode::usage, fmt::format("edit '{}': {}", edit, problem), std::move(hint));
}

// What a selector that the site lacks was probably meant to be.
std::string meant(EditSite site, Selector selector) {
  if (selector == Selector::head && has(site, Selector::kv_head))
    return fmt::format("{} has one value per key/value head, which a group of query heads shares: use kv_head=",
                       name(site));
  if (selector == Selector::kv_head && has(site, Selector::head))
    return fmt::format("{} has one value per query head: use head=", name(site));
  if (selector == Selector::row && has(site, Selector::key) && !has(site, Selector::row))
    return fmt::format("{} belongs to the position that is read: use key=", name(site));
  if (selector == Selector::key && site == EditSite::pattern)
    return "a row of weights is set as a whole; to change single ones use block edge or scale edge";
  return fmt::format("{} takes {}", name(site), selectors_of(site));
}

struct Parser {
  std::string_view text;
  Edit edit;
  std::vector<std::string_view> given = {};

  void set(std::string_view key, std::string_view value) {
    if (std::find(given.begin(), given.end(), key) != given.end())
      refuse(text, fmt::format("{}= is given twice", key), "give it once; 1,4 chooses several");
    given.push_back(key);
    if (value.empty())
      refuse(text, fmt::format("{}= has no value", key), "write for instance " + std::string(key) + "=5");
    if (const int selector = index_of(kSelectorNames, key); selector >= 0) {
      if (!has(edit.site, static_cast<Selector>(selector)))
        refuse(text, fmt::format("{} has no {}", name(edit.site), key),
               meant(edit.site, static_cast<Selector>(selector)));
      edit.selector[selector] = std::string(value);
    } else if (key == "by" && edit.action == Action::scale) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), edit.by);
      if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(edit.by) ||
          !std::isfinite(static_cast<float>(edit.by)))
        refuse(text, fmt::format("by={} is not a number", value), "write for instance by=0.5");
      if (edit.site == EditSite::edge && !(static_cast<float>(edit.by) > 0))
        refuse(text, "an edge can be scaled only by a number above 0", "to take it away: block edge");
    } else if (key == "from" && (edit.action == Action::patch || edit.action == Action::mean)) {
      edit.from = std::string(value);
    } else if (key == "seed" && edit.action == Action::permute) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), edit.seed);
      if (error != std::errc() || end != value.data() + value.size())
        refuse(text, fmt::format("seed={} is not a whole number from 0", value), "write for instance seed=1");
    } else {
      refuse(text, fmt::format("{} {} has no {}=", name(edit.action), name(edit.site), key), "it takes " + takes());
    }
  }

  std::string takes() const {
    std::string all = selectors_of(edit.site);
    if (edit.action == Action::scale) all += ", by=";
    if (edit.action == Action::patch || edit.action == Action::mean) all += ", from=";
    if (edit.action == Action::permute) all += ", seed=";
    return all;
  }

  void require(std::string_view key) const {
    if (std::find(given.begin(), given.end(), key) == given.end())
      refuse(text, fmt::format("{} needs {}=", name(edit.action), key),
             key == "from" ? "from=NAME names the run that the value comes from: --run NAME=TEXT or --contrast TEXT"
                           : "write for instance " + std::string(key) + (key == "by" ? "=0.5" : "=1"));
  }
};

}  // namespace

std::string_view name(Action action) { return kActions[static_cast<std::size_t>(action)]; }
std::string_view name(EditSite site) { return kSites[static_cast<std::size_t>(site)]; }
std::string_view name(Selector selector) { return kSelectorNames[static_cast<std::size_t>(selector)]; }

bool has(EditSite site, Selector selector) {
  const bool keys = site == EditSite::k || site == EditSite::v;
  const bool whole = site >= EditSite::attn_out;  // no heads
  switch (selector) {
    case Selector::layer:
      return true;
    case Selector::head:
      return !keys && !whole;
    case Selector::kv_head:
      return keys;
    case Selector::row:
      return !keys;
    case Selector::key:
      return keys || site == EditSite::edge;
  }
  return false;
}

std::string selectors_of(EditSite site) {
  std::vector<std::string> names;
  for (int s = 0; s < kSelectors; ++s)
    if (has(site, static_cast<Selector>(s))) names.push_back(std::string(kSelectorNames[s]) + "=");
  return listed(names);
}

Edit parse_edit(std::string_view text) {
  std::vector<std::string_view> names, settings;
  for (const std::string_view word : words_of(text))
    (word.find('=') == std::string_view::npos ? names : settings).push_back(word);
  constexpr const char* kForm = "an edit is ACTION SITE [key=value ...], for instance: block edge row=-1 key=4";
  if (names.empty()) refuse(text, "there is no action", kForm);
  Parser parser{text, {}};
  const int action = index_of(kActions, names[0]);
  if (action < 0) refuse(text, fmt::format("no action '{}'", names[0]), "actions are " + listed(kActions));
  parser.edit.action = static_cast<Action>(action);
  if (names.size() < 2)
    refuse(text, "there is no site", fmt::format("{} takes {}", names[0], sites_for(parser.edit.action)));
  const int site = index_of(kSites, names[1]);
  if (site < 0 || !allowed(parser.edit.action, static_cast<EditSite>(site)))
    refuse(text, fmt::format("{} does not go with '{}'", names[0], names[1]),
           fmt::format("{} takes {}", names[0], sites_for(parser.edit.action)));
  parser.edit.site = static_cast<EditSite>(site);
  if (names.size() > 2) refuse(text, fmt::format("'{}' is not key=value", names[2]), kForm);
  for (const std::string_view setting : settings) {
    const std::size_t equals = setting.find('=');
    parser.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  if (parser.edit.action == Action::scale) parser.require("by");
  if (parser.edit.action == Action::patch) parser.require("from");
  if (parser.edit.action == Action::permute) parser.require("seed");
  return parser.edit;
}

std::string to_string(const Edit& edit) {
  std::string text = fmt::format("{} {}", name(edit.action), name(edit.site));
  if (edit.action == Action::scale) text += fmt::format(" by={}", edit.by);
  if (!edit.from.empty()) text += " from=" + edit.from;
  if (edit.action == Action::permute) text += fmt::format(" seed={}", edit.seed);
  for (int s = 0; s < kSelectors; ++s)
    if (edit.selector[s]) text += fmt::format(" {}={}", kSelectorNames[s], *edit.selector[s]);
  return text;
}

}  // namespace regard
