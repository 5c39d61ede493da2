#include "model/site.h"

#include <charconv>
#include <utility>

#include "tensor/error.h"

namespace regard {
namespace {

struct Names {
  Site site;
  std::string_view shorter;
  std::string_view in_block;  // behind "blocks.N."
};

constexpr Names kNames[] = {
    {Site::resid_pre, "resid_pre", "resid_pre"},
    {Site::q, "q", "attn.q"},
    {Site::k, "k", "attn.k"},
    {Site::v, "v", "attn.v"},
    {Site::rot_q, "rot_q", "attn.rot_q"},
    {Site::rot_k, "rot_k", "attn.rot_k"},
    {Site::attn_scores, "attn_scores", "attn.scores"},
    {Site::pattern, "pattern", "attn.pattern"},
    {Site::z, "z", "attn.z"},
    {Site::result, "result", "attn.result"},
    {Site::attn_out, "attn_out", "attn_out"},
    {Site::cross_q, "cross_q", "cross.q"},
    {Site::cross_z, "cross_z", "cross.z"},
    {Site::cross_out, "cross_out", "cross_out"},
    {Site::resid_mid, "resid_mid", "resid_mid"},
    {Site::mlp_post, "mlp_post", "mlp.post"},
    {Site::mlp_out, "mlp_out", "mlp_out"},
    {Site::resid_post, "resid_post", "resid_post"},
};

}  // namespace

std::string_view name(Site site) { return kNames[static_cast<int>(site)].shorter; }

std::string full_name(Site site, std::int64_t layer) {
  return fmt::format("blocks.{}.{}", layer, kNames[static_cast<int>(site)].in_block);
}

SiteName parse_site(std::string_view text) {
  constexpr std::string_view prefix = "blocks.";
  std::int64_t layer = -1;
  std::string_view rest = text;
  if (rest.starts_with(prefix)) {
    rest.remove_prefix(prefix.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    if (error == std::errc() && layer >= 0 && end != rest.data() + rest.size() && *end == '.') {
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
      for (const Names& n : kNames)
        if (rest == n.in_block || rest == n.shorter) return {n.site, layer};
    }
  } else {
    for (const Names& n : kNames)
      if (text == n.shorter) return {n.site, -1};
  }
  std::string list;
  for (const Names& n : kNames) list += (list.empty() ? "" : ", ") + std::string(n.shorter);
  throw Error(ErrorCode::usage, fmt::format("there is no site '{}'", text),
              fmt::format("sites are {}; with a layer: blocks.3.attn.pattern", list));
}

}  // namespace regard
