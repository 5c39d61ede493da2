#include "lesson/real_model.h"

#include <fmt/core.h>

#include "model/forward.h"
#include "reading/reading_tap.h"
#include "text/display.h"

namespace regard {

LessonText no_model_here() {
  return {
      "This part is about a model, and none was given: regard lesson takes the one inside the program, regard lesson "
      "MODEL any other.",
      "这一部分要用一个模型，这里没有给出：regard lesson 会用程序自带的模型，regard lesson MODEL 可以换成别的模型。"};
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
