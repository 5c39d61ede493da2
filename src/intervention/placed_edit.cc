#include "intervention/placed_edit.h"

#include <algorithm>
#include <array>

#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::array<std::string_view, kAttentions> kAttentionNames = {"encoder", "decoder", "cross"};
constexpr std::string_view kKey = "attention=";

}  // namespace

std::string_view name(Attention attention) { return kAttentionNames[static_cast<std::size_t>(attention)]; }

PlacedEdit parse_placed_edit(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r";
  PlacedEdit placed;
  std::string rest;
  bool given = false;
  for (std::size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = text.find_first_not_of(kSpace, end);
    if (!word.starts_with(kKey)) {
      rest += (rest.empty() ? "" : " ") + std::string(word);
      continue;
    }
    if (given)
      throw Error(ErrorCode::usage, fmt::format("edit '{}': attention= is given twice", text),
                  "an edit is about one; give another --edit for the other");
    given = true;
    const auto found = std::find(kAttentionNames.begin(), kAttentionNames.end(), word.substr(kKey.size()));
    if (found == kAttentionNames.end())
      throw Error(ErrorCode::usage, fmt::format("edit '{}': there is no {}", text, word),
                  "there are attention=encoder, decoder and cross");
    placed.attention = static_cast<Attention>(found - kAttentionNames.begin());
  }
  placed.edit = parse_edit(rest);
  const EditSite site = placed.edit.site;
  if (placed.attention == Attention::cross && site != EditSite::edge && site != EditSite::z &&
      site != EditSite::attn_out)
    throw Error(ErrorCode::usage, fmt::format("edit '{}': cross attention has no {} to edit", text, name(site)),
                "of it there are edge, z and attn_out; the others belong to attention=encoder and decoder");
  return placed;
}

std::string to_string(const PlacedEdit& edit) {
  std::string text = to_string(edit.edit);
  const std::size_t behind_site = std::min(text.find(' ', text.find(' ') + 1), text.size());
  return text.insert(behind_site, fmt::format(" attention={}", name(edit.attention)));
}

}  // namespace regard
