#include "weights/tensor_part.h"

namespace regard {

void take_projection(TensorPart& part, Projection which, const ModelConfig& c) {
  const std::int64_t q = c.heads * c.head_dim, k = c.kv_heads * c.head_dim, v = c.kv_heads * c.value_dim;
  if (which == Projection::q) part.take_rows(0, q);
  if (which == Projection::k) part.take_rows(q, k);
  if (which == Projection::v) part.take_rows(q + k, v);
}

CanonicalName::CanonicalName(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  const std::size_t last = name.rfind('.');
  suffix = name.substr(last);
  name = name.substr(0, last);
  if (name.starts_with(kBlock)) {
    name.remove_prefix(kBlock.size());
    layer = name.substr(0, name.find('.'));
    name.remove_prefix(layer.size() + 1);
  }
  const std::size_t dot = name.find('.');
  piece = name.substr(0, dot);
  if (dot != std::string_view::npos) expert = name.substr(dot + 1);
}

}  // namespace regard
