#include "model.h"

#include <chrono>
#include <memory>

#include "model/forward.h"

namespace regard::bench {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<Line> model_lines(const std::string& path) {
  const Model model = Model::load(path, Packing::all);
  const ModelConfig& c = model.config();
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < 512; ++i) ids.push_back(static_cast<std::int32_t>((i * 7919 + 13) % c.vocabulary));

  double prefill = 1e30, decode = 1e30;  // the best of three, as the peer's program reports it
  for (int round = 0; round < 3; ++round) {
    State state(c);
    Tensor<float, 2> out({1, c.vocabulary});
    prefill = std::min(prefill, seconds_of([&] {
                         const auto resid = feed(model, state, ids);
                         logits(model, resid.view(), out.view());
                       }));
    State step_state(c);
    feed(model, step_state, std::span(ids).first(16));
    decode = std::min(decode, seconds_of([&] {
                        for (std::size_t i = 16; i < 80; ++i) {
                          const auto resid = feed(model, step_state, std::span(ids).subspan(i, 1));
                          logits(model, resid.view(), out.view());
                        }
                      }));
  }
  const std::string shape = c.name.empty() ? path : c.name;
  return {{"model prefill", shape + ", 512 tokens", "tokens/s", 512 / prefill},
          {"model decode", shape + ", 64 steps after 16", "tokens/s", 64 / decode}};
}

}  // namespace regard::bench
