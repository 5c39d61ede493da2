#pragma once
// An edit of a running model in its text form (FACES.md, which every face uses):
//
//   ACTION SITE [key=value ...]      block edge row=-1 key=4      zero z layer=10 head=3      patch k from=contrast
//   key=9
//
// What it means for a given model and text is worked out by resolve() (intervention/cells.h).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace regard {

enum class Action { block, scale, zero, mean, patch, freeze, uniform, permute };

// What an edit may name. All but edge are sites of the model; k and q stand for what attention uses, so after rotary.
enum class EditSite { edge, pattern, q, k, v, z, attn_out, mlp_out, resid_pre, resid_post };

// What chooses cells of a site. A selector that a site does not have is an error.
enum class Selector { layer, head, kv_head, row, key };
inline constexpr int kSelectors = 5;

struct Edit {
  Action action = Action::block;
  EditSite site = EditSite::edge;
  std::optional<std::string> selector[kSelectors];  // as written ("2:7"); nothing: all
  double by = 1;                                    // scale
  std::string from;                                 // patch, mean: the other run's name; empty: this run
  std::uint64_t seed = 0;                           // permute

  const std::optional<std::string>& at(Selector s) const { return selector[static_cast<int>(s)]; }
  std::optional<std::string>& at(Selector s) { return selector[static_cast<int>(s)]; }
};

std::string_view name(Action action);
std::string_view name(EditSite site);
std::string_view name(Selector selector);
bool has(EditSite site, Selector selector);
// Every selector of a site, for messages: "layer=, head=, row=".
std::string selectors_of(EditSite site);

// Error{usage} that names the word and says what would be understood.
Edit parse_edit(std::string_view text);
// One spelling for every edit that means the same: in receipts, and to know a sweep again.
std::string to_string(const Edit& edit);

}  // namespace regard
