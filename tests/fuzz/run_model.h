#pragma once
// A model that could be loaded, used: every weight read, a few tokens through it.

#include "fuzz/fuzz_support.h"
#include "model/forward.h"
#include "model/source.h"

namespace regard::testing {

inline void load_and_run(const std::filesystem::path& path) {
  const Model model = Model::load(path);
  use(model.checkpoint());
  State state(model.config(), 1, 3);
  const std::vector<std::int32_t> ids(3, 0);
  if (model.encoder() != nullptr) set_source(model, state, encode(*model.encoder(), ids).view());
  const Tensor<float, 2> resid = feed(model, state, ids);
  if (!model.config().head) return;
  Tensor<float, 2> out({1, model.config().vocabulary});
  logits(model, resid.view(), out.view());
}

}  // namespace regard::testing
