#include "target_text.h"

#include <limits>

#include "arguments.h"
#include "model/forward.h"
#include "model/sampling.h"
#include "model/source.h"
#include "tensor/error.h"

namespace regard::cli {

std::vector<std::int32_t> target_tokens(const Model& model, View<const float, 2> encoded,
                                        const std::optional<std::string>& target, const std::optional<std::string>& ids,
                                        std::int64_t most) {
  if (target && ids) throw Error(ErrorCode::usage, "--decoder and --decoder-ids together", "give one of them");
  if (ids) return parse_ids("--decoder-ids", *ids);
  std::vector<std::int32_t> tokens = {model.config().decoder_start};
  if (target) {
    const auto text = model.tokenizer().encode_ids(*target, {.add_special = false});
    tokens.insert(tokens.end(), text.begin(), text.end());
    return tokens;
  }
  State state(model.config());
  set_source(model, state, encoded);
  Tensor<float, 2> scores({1, model.config().vocabulary});
  while (std::ssize(tokens) <= most) {
    const Tensor<float, 2> resid = feed(model, state, std::span(tokens).last(1));
    logits(model, resid.view(), scores.view());
    if (const auto padding = model.tokenizer().padding())  // never said (Marian)
      scores(0, *padding) = -std::numeric_limits<float>::infinity();
    const std::int32_t next = sample(scores.data(), scores.size(), {}, 0);
    if (model.tokenizer().ends_text(next)) break;
    tokens.push_back(next);
  }
  return tokens;
}

}  // namespace regard::cli
