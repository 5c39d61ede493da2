#include "lesson/real_model.h"

#include <fmt/core.h>

#include "model/forward.h"
#include "reading/reading_tap.h"
#include "text/display.h"
#include "weights/catalogue.h"

namespace regard {

LessonText no_model_here() {
  constexpr const char* kName = "smollm2";
  const std::string bytes = human_bytes(find_named_model(kName)->download_bytes());
  return {
      fmt::format(
          "This part is about a real model, and none is here. regard fetch {} gets a small one ({}); then regard "
          "lesson takes it, or regard lesson MODEL any other.",
          kName, bytes),
      fmt::format(
          "这一部分要用真实的模型，这里还没有。regard fetch {} 会取来一个小模型（{}），之后 regard lesson 就会用它；"
          "regard lesson MODEL 可以换成别的模型。",
          kName, bytes)};
}

Tensor<float, 4> last_row_weights(const LessonModel& real, const std::vector<std::int64_t>& layers) {
  const std::int64_t tokens = std::ssize(real.ids);
  ReadingRequest request;
  request.layers = layers;
  request.rows = {-1};
  request.statistics = {Statistic::weights};
  ReadingTap tap(*real.model, resolve(request, real.model->config(), tokens), real.ids);
  State state(real.model->config(), 1, tokens);
  FeedOptions options;
  options.tap = &tap;
  feed(*real.model, state, real.ids, 0, options);
  return tap.finish().weights;
}

std::string token_text(const LessonModel& real, std::int64_t position) {
  return display(real.model->tokenizer().bytes(real.ids[static_cast<std::size_t>(position)]));
}

std::string whole_text(const LessonModel& real) { return display(real.model->tokenizer().decode(real.ids)); }

}  // namespace regard
