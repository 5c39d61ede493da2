// The lesson's numbers: the engine's beside the exact ones, gradients beside central differences.

#include "lesson/lesson.h"

#include "attention/backward.h"
#include "attention/forward.h"
#include "lesson/attend.h"
#include "lesson/learning.h"
#include "lesson/parts.h"
#include "lesson/worked_head.h"
#include "support/errors.h"

namespace regard {
namespace {

// Fewer roundings than that lie between the inputs of a small head and its outputs, each of half a unit in the last
// place of numbers that are not larger than the result or 1.
double rounding(double size) { return 16 * 0x1p-24 * std::max(1.0, std::fabs(size)); }

// All but those that measure or need a model.
const Lesson& computed() {
  static const Lesson kLesson = make_lesson({.steps = {"a", "b", "c", "d", "f", "g", "j", "k", "l"}});
  return kLesson;
}

TEST(Lesson, TheEnginesNumbersAreTheExactOnes) {
  int compared = 0;
  for (const Step& step : computed().steps)
    for (const auto& [name, numbers] : step.values) {
      std::int64_t size = 1;
      for (const std::int64_t extent : numbers.shape) size *= extent;
      ASSERT_EQ(size, std::ssize(numbers.items)) << step.id << ' ' << name;
      for (const Number& number : numbers.items)
        if (number.exact) {
          EXPECT_NEAR(number.value, number.exact->number(), rounding(number.exact->number())) << step.id << ' ' << name;
          ++compared;
        }
    }
  EXPECT_GT(compared, 200);
}

TEST(Lesson, EveryRowOfWeightsAddsUpToOne) {
  for (const auto& [step, name] : {std::pair{"b", "weights"},
                                   {"d", "causal_weights"},
                                   {"d", "padding_weights"},
                                   {"f", "cross_weights"},
                                   {"j", "weights"}}) {
    const Numbers* weights = nullptr;
    for (const Step& one : computed().steps)
      if (one.id == step) weights = one.value(name);
    ASSERT_NE(weights, nullptr) << name;
    for (std::int64_t r = 0; r < weights->shape[0]; ++r) {
      Rational sum = 0;
      for (std::int64_t c = 0; c < weights->shape[1]; ++c) sum = sum + (*weights)(r, c).exact->coefficient;
      EXPECT_EQ(sum, Rational(1)) << name;
    }
  }
}

TEST(Lesson, BothLanguagesSayEverything) {
  for (const auto& [id, title] : lesson_contents()) EXPECT_TRUE(!title.en.empty() && !title.zh.empty()) << id;
  for (const Step& step : computed().steps)
    for (const Block& block : step.blocks)
      if (const auto* text = std::get_if<LessonText>(&block)) {
        EXPECT_EQ(text->en.empty(), text->zh.empty()) << text->en;
      }
}

TEST(Lesson, OnlyTheStepsAskedForAreMade) {
  const Lesson lesson = make_lesson({.steps = {"k", "a"}});
  ASSERT_EQ(lesson.steps.size(), 2u);
  EXPECT_EQ(lesson.steps[0].id, "a");  // in the lesson's order
  testing::expect_error(ErrorCode::usage, {"\"z\""}, [] { make_lesson({.steps = {"z"}}); });
}

TEST(Lesson, WithoutAModelItSaysWhatIsMissing) {
  for (const Step& step : make_lesson({.steps = {"h", "j"}}).steps) {
    const auto* text = std::get_if<LessonText>(&step.blocks.back());
    ASSERT_NE(text, nullptr);
    EXPECT_NE(text->en.find("regard lesson MODEL"), std::string::npos);
  }
}

TEST(Lesson, SlidersStartAtWhatTheTextShows) {
  const SmallHead head = to_small_head(worked_head());
  const WorkedResult worked = work(worked_head());
  for (const Step& step : computed().steps)
    for (const Block& block : step.blocks)
      if (const auto* explore = std::get_if<Exploration>(&block); explore != nullptr && explore->id == "sharpness") {
        const SmallHeadResult result = run(moved(explore->head, explore->sliders, {explore->sliders[0].initial}));
        for (std::size_t i = 0; i < 9; ++i)
          EXPECT_EQ(static_cast<float>(worked.weights.items[i].value), static_cast<float>(result.weights.items[i]));
      }
}

TEST(Lesson, TheSpreadOfDotProductsIsTheRootOfTheirLength) {
  const Step step = why_the_root({});
  const Numbers &widths = *step.value("d"), &variance = *step.value("variance");
  // 512 queries with 512 keys: given the queries the variance is the mean of their squared lengths, d (1 +- sqrt(2 /
  // (512 d))), and likewise over the keys; the products themselves add sqrt(2) / 512. Five of these.
  for (std::size_t i = 0; i < widths.items.size(); ++i) {
    const double d = widths.items[i].value, relative = 2 * std::sqrt(2 / (512 * d)) + std::sqrt(2.0) / 512;
    EXPECT_NEAR(variance.items[i].value / d, 1, 5 * relative) << d;
  }
  const Numbers &slope = *step.value("slope"), &scaled = *step.value("slope_scaled");
  EXPECT_LT(slope.items.back().value, slope.items.front().value / 5);
  EXPECT_GT(scaled.items.back().value, scaled.items.front().value / 2);
}

// The loss as the formulas say it, in double.
double plain_loss(const SmallHead& h, const SmallMatrix& target) {
  const auto row = [](const SmallMatrix& x, const SmallMatrix& w, std::int64_t r) {
    std::vector<double> y(static_cast<std::size_t>(w.columns), 0);
    for (std::int64_t n = 0; n < w.columns; ++n)
      for (std::int64_t c = 0; c < w.rows; ++c) y[static_cast<std::size_t>(n)] += x(r, c) * w(c, n);
    return y;
  };
  const std::vector<double> q = row(h.xq, h.wq, 0);
  std::vector<double> p;
  double sum = 0;
  for (std::int64_t s = 0; s < h.xk.rows; ++s) {
    const std::vector<double> k = row(h.xk, h.wk, s);
    double score = 0;
    for (std::size_t d = 0; d < q.size(); ++d) score += q[d] * k[d];
    p.push_back(std::exp(score * h.scale));
    sum += p.back();
  }
  double loss = 0;
  for (std::int64_t e = 0; e < target.columns; ++e) {
    double out = 0;
    for (std::int64_t s = 0; s < h.xv.rows; ++s)
      out += p[static_cast<std::size_t>(s)] / sum * row(h.xv, h.wv, s)[static_cast<std::size_t>(e)];
    loss += (out - target(0, e)) * (out - target(0, e)) / 2;
  }
  return loss;
}

TEST(Learning, GradientsAreWhatCentralDifferencesSay) {
  for (const std::vector<double>& nudge : {std::vector<double>{0, 0, 0, 0}, {0.3, -0.7, 0.2, 0.9}}) {
    SmallHead head = to_small_head(worked_head());
    head.xq = {1, 2, {1, 1}};
    for (double& item : head.wk.items) item *= head.key_scale;
    head.key_scale = 1;
    for (std::size_t i = 0; i < 4; ++i) {
      head.wq.items[i] += nudge[i];
      head.wk.items[i] -= nudge[3 - i];
      head.wv.items[i] += nudge[i] / 2;
    }
    const SmallMatrix target{1, 2, {1, 1}};
    const HeadGradients back = gradients(head, target);
    EXPECT_NEAR(back.loss, plain_loss(head, target), rounding(4));
    const std::tuple<SmallMatrix SmallHead::*, const SmallMatrix*, const char*> kinds[] = {
        {&SmallHead::wq, &back.d_wq, "W_Q"}, {&SmallHead::wk, &back.d_wk, "W_K"}, {&SmallHead::wv, &back.d_wv, "W_V"}};
    for (const auto& [matrix, gradient, name] : kinds)
      for (std::size_t i = 0; i < 4; ++i) {
        constexpr double kStep = 1e-5;  // errors: its square, and 1e-16 / it
        SmallHead more = head, less = head;
        (more.*matrix).items[i] += kStep;
        (less.*matrix).items[i] -= kStep;
        const double slope = (plain_loss(more, target) - plain_loss(less, target)) / (2 * kStep);
        EXPECT_NEAR(gradient->items[i], slope, rounding(4) + 1e-9) << name << ' ' << i;
      }
    EXPECT_LT(loss_of(stepped(head, back, 0.1), target), back.loss);
  }
}

// What flows back by hand is what the engine's backward makes of the same head.
TEST(Learning, GradientsAreTheEnginesBackward) {
  SmallHead head = to_small_head(worked_head());
  head.xq = {1, 2, {1, 1}};
  head.wk = key_weights(head);
  head.key_scale = 1;
  const HeadGradients back = gradients(head, {1, 2, {1, 1}});
  const Tensor<float, 2> q = project(to_tensor(head.xq).view(), to_tensor(head.wq).view()),
                         k = project(to_tensor(head.xk).view(), to_tensor(head.wk).view()),
                         v = project(to_tensor(head.xv).view(), to_tensor(head.wv).view()),
                         d_out = to_tensor(back.d_output);
  const std::int64_t S = k.shape()[0];
  const auto rows_of = [](const std::byte* const* page, std::int64_t length) {
    return Rows{DType::f32, page, length, 8, 8, 4};
  };
  const auto* keys = reinterpret_cast<const std::byte*>(k.data());
  const auto* values = reinterpret_cast<const std::byte*>(v.data());
  const Sequence sequence{.length = S, .k = rows_of(&keys, S), .v = rows_of(&values, S), .visible = {}, .segment = {}};
  const QueryRow row;
  const Tensor<float, 3> no_bias({1, 1, S});
  Problem problem;
  problem.q = {q.data(), {1, 1, 2}};
  problem.rows = {&row, 1};
  problem.sequences = {&sequence, 1};
  problem.value_channels = 2;
  problem.scale = static_cast<float>(head.scale);
  problem.mask.bias = no_bias.view();
  Tensor<float, 3> out({1, 1, 2}), d_q({1, 1, 2}), d_k({S, 1, 2}), d_v({S, 1, 2}), d_scores({1, 1, S});
  Tensor<RowSoftmax, 2> softmax({1, 1});
  forward(problem, out.view(), softmax.view());
  const View<float, 3> to_keys = d_k.view(), to_values = d_v.view();
  backward(problem, out.view(), softmax.view(), {d_out.data(), {1, 1, 2}},
           {.d_q = d_q.view(), .d_k = {&to_keys, 1}, .d_v = {&to_values, 1}, .d_bias = d_scores.view(), .d_sinks = {}});
  const std::pair<const SmallMatrix*, const Tensor<float, 3>*> pairs[] = {
      {&back.d_q, &d_q}, {&back.d_k, &d_k}, {&back.d_v, &d_v}, {&back.d_scores, &d_scores}};
  for (const auto& [by_hand, engine] : pairs) {
    ASSERT_EQ(std::ssize(by_hand->items), engine->size());
    for (std::int64_t i = 0; i < engine->size(); ++i)
      EXPECT_NEAR(engine->data()[i], by_hand->items[i], rounding(by_hand->items[i]));
  }
}

}  // namespace
}  // namespace regard
