#include "model.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "model/forward.h"

namespace regard::bench {
std::vector<Line> model_lines(const std::string& path) {
  const Model model = Model::load(path, Packing::all);
  const ModelConfig& c = model.config();
  std::vector<std::int32_t> ids;
  const std::int64_t read = c.context > 0 ? std::min<std::int64_t>(512, c.context) : 512;
  const std::int64_t begin = std::min<std::int64_t>(16, read / 2), steps = std::min<std::int64_t>(64, read - begin);
  for (std::int64_t i = 0; i < read; ++i) ids.push_back(static_cast<std::int32_t>((i * 7919 + 13) % c.vocabulary));

  double prefill = 1e30, decode = 1e30;  // the best of three, as the peer's program reports it
  for (int round = 0; round < 3; ++round) {
    State state(c);
    Tensor<float, 2> out({1, c.vocabulary});
    prefill = std::min(prefill, seconds_of([&] {
                         const auto resid = feed(model, state, ids);
                         logits(model, resid.view(), out.view());
                       }));
    State step_state(c);
    feed(model, step_state, std::span(ids).first(static_cast<std::size_t>(begin)));
    decode = std::min(decode, seconds_of([&] {
                        for (std::int64_t i = begin; i < begin + steps; ++i) {
                          const auto resid = feed(model, step_state, std::span(&ids[i], 1));
                          logits(model, resid.view(), out.view());
                        }
                      }));
  }
  const std::string shape = c.name.empty() ? path : c.name;
  return {{"model prefill", fmt::format("{}, {} tokens", shape, read), "tokens/s", static_cast<double>(read) / prefill},
          {"model decode", fmt::format("{}, {} steps after {}", shape, steps, begin), "tokens/s",
           static_cast<double>(steps) / decode}};
}

}  // namespace regard::bench
