// SmolLM2-135M-Instruct and Gemma 3 270M against float64 values that the public implementation gave on the stored
// weights. The goldens and the yardsticks are in tests/data/goldens: err32 is the public implementation's own float32
// error, plain_f32_*.json that of a plain float32 evaluation (plain_f32.py beside them). Law 1: at most twice that.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "kernels/softmax.h"
#include "model/forward.h"
#include "support/goldens.h"
#include "support/targets.h"

namespace regard {
namespace {

using Json = nlohmann::json;

// The residual of the last row at each block's input.
class LastRow : public Tap {
 public:
  bool wants(Site site, std::int64_t) const override { return site == Site::resid_pre; }
  void at(Site, std::int64_t layer, std::span<const Row>, View<float, 3> value) override {
    const auto last = value[value.shape[0] - 1];
    if (std::ssize(rows) <= layer) rows.resize(static_cast<std::size_t>(layer + 1));
    rows[layer].assign(&last(0, 0), &last(0, 0) + last.shape[1]);
  }
  std::vector<std::vector<float>> rows;
};

// The public implementation's largest error of a token's log-probability over the prompts of a file. That of one prompt
// is the largest of a few tokens, which can be luckily small: 1.7e-6 of nine tokens of Gemma's "tower", where a plain
// float32 evaluation is off by 4.0e-6, and by 1.1e-5 elsewhere. These are errors of the logits, of the size of their
// own err32; taking the softmax of the same logits in double changes them by less than 1e-6.
double worst_logprob(const Json& prompts) {
  double error = 0;
  for (const Json& prompt : prompts) error = std::max(error, prompt["err32"]["token_logprob_max"].get<double>());
  return error;
}

// The plain evaluation's largest error of a quantity over all prompts and layers: one number per layer and prompt is
// too small a sample of an error to be a yardstick by itself.
double worst(const Json& plain, const char* quantity) {
  double error = 0;
  for (const Json& prompt : plain)
    for (const Json& e : prompt[quantity]) error = std::max(error, e.get<double>());
  return error;
}

void compare(const Model& model, const Json& prompt, const Json& plain, double logprob_yardstick) {
  SCOPED_TRACE(prompt["name"].get<std::string>());
  const auto ids = prompt["ids"].get<std::vector<std::int32_t>>();
  EXPECT_EQ(model.tokenizer().encode_ids(prompt["text"].get<std::string>()), ids);

  State state(model.config());
  LastRow tap;
  TokenLogprobs logprobs(model, ids);
  FeedOptions options;
  options.tap = &tap;
  options.on_rows = [&](std::int64_t first, View<const float, 2> resid) { logprobs.rows(first, resid); };
  const auto resid = feed(model, state, ids, 0, options);
  const std::int64_t V = model.config().vocabulary;
  Tensor<float, 2> out({1, V});
  logits(model, resid.view(), out.view());

  double top_error = 0;
  for (const Json& entry : prompt["top"])
    top_error = std::max(top_error, std::fabs(out(0, entry[0].get<int>()) - entry[1].get<double>()));
  const double err32 = prompt["err32"]["logits_last_max"];
  EXPECT_LE(top_error, 2 * err32);
  EXPECT_LE(std::fabs(log_sum_exp(out.data(), V) - prompt["logsumexp"].get<double>()), 2 * err32);
  const auto expected_logprob = prompt["token_logprob"].get<std::vector<double>>();
  const double logprob_error = testing::max_error(logprobs.values(), expected_logprob);
  EXPECT_LE(logprob_error, 2 * logprob_yardstick);

  const double norm_yardstick = worst(plain, "resid_last_row_norm");
  const double first_yardstick = worst(plain, "resid_last_row_first8");
  double norm_error = 0, first_error = 0;
  for (std::size_t l = 0; l < tap.rows.size(); ++l) {
    double squares = 0;
    for (float v : tap.rows[l]) squares += static_cast<double>(v) * v;
    norm_error = std::max(norm_error, std::fabs(std::sqrt(squares) - prompt["resid_last_row_norm"][l].get<double>()));
    for (int i = 0; i < 8; ++i)
      first_error =
          std::max(first_error, std::fabs(tap.rows[l][i] - prompt["resid_last_row_first8"][l][i].get<double>()));
  }
  EXPECT_EQ(std::ssize(tap.rows), model.config().layers);
  EXPECT_LE(norm_error, 2 * norm_yardstick);
  EXPECT_LE(first_error, 2 * first_yardstick);
  std::printf("%-10s logits %.2e (err32 %.2e)  logprob %.2e (%.2e)  resid %.2e (%.2e)\n",
              prompt["name"].get<std::string>().c_str(), top_error, err32, logprob_error, logprob_yardstick,
              first_error, first_yardstick);
}

class Golden : public testing::GoldenTest {
 protected:
  void compare_all(const Json& prompts) const {
    const Json plain = plain_f32();
    const double logprob_yardstick = worst_logprob(prompts);
    for (const Json& prompt : prompts) compare(model(), prompt, plain, logprob_yardstick);
  }
};

TEST_P(Golden, Prompts) { compare_all(prompts()); }
TEST_P(Golden, LongPrompt) { compare_all(long_prompts()); }
INSTANTIATE_TEST_SUITE_P(Real, Golden, testing::golden_models());

}  // namespace
}  // namespace regard
