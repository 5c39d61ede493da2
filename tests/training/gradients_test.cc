// Gradients of whole models beside those of the public implementation (tests/data/gradients), and their laws.

#include <gtest/gtest.h>

#include <filesystem>

#include "model/forward.h"
#include "support/errors.h"
#include "support/families.h"
#include "support/targets.h"
#include "support/temp_folder.h"
#include "training/model_pass.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

fs::path gradients_folder() { return fs::path(REGARD_TEST_DATA) / "gradients"; }

std::vector<std::string> gradient_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(gradients_folder()))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Row> text_rows(std::span<const std::int32_t> ids, std::int32_t sequence = 0) {
  std::vector<Row> rows;
  for (std::size_t t = 0; t < ids.size(); ++t) rows.push_back({ids[t], sequence, static_cast<std::int64_t>(t)});
  return rows;
}
std::vector<std::int32_t> next_tokens(std::span<const std::int32_t> ids) {
  std::vector<std::int32_t> targets(ids.begin() + 1, ids.end());
  targets.push_back(-1);
  return targets;
}

// The gradients at every site, one after another.
class SiteGradients final : public GradientTap {
 public:
  explicit SiteGradients(std::optional<Site> only = {}) : only_(only) {}
  bool wants(Site site, std::int64_t) const override { return !only_ || site == *only_; }
  void at(Site site, std::int64_t layer, View<const float, 3> gradient) override {
    std::vector<float>& kept = by_name[full_name(site, layer)];
    for (std::int64_t r = 0; r < gradient.shape[0]; ++r)
      for (std::int64_t h = 0; h < gradient.shape[1]; ++h)
        for (std::int64_t c = 0; c < gradient.shape[2]; ++c) kept.push_back(gradient(r, h, c));
  }
  std::map<std::string, std::vector<float>> by_name;

 private:
  std::optional<Site> only_;
};

double largest(std::span<const float> values) {
  double most = 0;
  for (const float v : values) most = std::max(most, std::fabs(double{v}));
  return most;
}

TEST(ModelGradients, AreThoseOfThePublicImplementation) {
  for (const std::string& name : gradient_names()) {
    SCOPED_TRACE(name);
    const Model model = Model::load(testing::families_folder() / name);
    const std::vector<std::int32_t> ids = testing::Expected(name).ids("ids");
    ModelPass pass(model, text_rows(ids));
    pass.forward();
    Parameters gradients(model.checkpoint(), Parameters::From::zeros);
    SiteGradients sites(Site::resid_pre);
    const double loss = pass.loss(next_tokens(ids), &gradients, &sites);

    const SafetensorsFiles expected = read_safetensors(gradients_folder() / name / "sites.safetensors");
    const auto figure = [&](const char* key) { return std::stod(expected.metadata.at(key)); };
    // Of the mean of 65 numbers near 5: what f32 rounds away of the loss of a row may all fall to one side.
    EXPECT_NEAR(loss, figure("loss"), 2 * figure("err32_loss") + 0x1p-24 * figure("loss"));
    for (const auto& [site, tensor] : expected.tensors) {
      std::vector<float> truth(static_cast<std::size_t>(tensor.bytes) / sizeof(float));
      std::memcpy(truth.data(), tensor.data, static_cast<std::size_t>(tensor.bytes));
      EXPECT_LE(testing::max_error(sites.by_name.at(site), truth) / largest(truth), 2 * figure("err32_sites")) << site;
    }

    // The gradients as a model of their own: its tensors get the names and the layout that the model's have.
    testing::TempFolder folder;
    fs::copy_file(testing::families_folder() / name / "config.json", folder.path() / "config.json");
    fs::copy_file(gradients_folder() / name / "model.safetensors", folder.path() / "model.safetensors");
    Parameters truth(load_checkpoint(folder.path()));
    const double nothing = 1e-12 * largest(truth.values());
    ASSERT_EQ(truth.places().size(), gradients.places().size());
    for (const Parameters::Place& place : truth.places()) {
      const auto n = static_cast<std::size_t>(place.rows * place.cols);
      const std::span<const float> exact(truth.at(place.name).data, n), found(gradients.at(place.name).data, n);
      const double error = testing::max_error(found, exact), size = largest(exact);
      if (size > nothing)
        EXPECT_LE(error / size, 2 * figure("err32_weights")) << place.name;
      else
        EXPECT_LE(error, 2 * figure("err32_zero")) << place.name;
    }
  }
}

// All that a pass gives, in one vector.
std::vector<float> everything(const Model& model, std::span<const std::int32_t> ids, Keep keep) {
  ModelPass pass(model, text_rows(ids), keep);
  pass.forward();
  Parameters gradients(model.checkpoint(), Parameters::From::zeros);
  SiteGradients sites;
  std::vector<float> all = {static_cast<float>(pass.loss(next_tokens(ids), &gradients, &sites))};
  all.insert(all.end(), gradients.values().begin(), gradients.values().end());
  for (const auto& [name, values] : sites.by_name) all.insert(all.end(), values.begin(), values.end());
  return all;
}

TEST(ModelGradients, SameBitsEverywhereAndHoweverMuchIsKept) {
  for (const char* name : {"qwen3", "gemma3", "gpt_neox"}) {
    SCOPED_TRACE(name);
    const Model model = Model::load(testing::families_folder() / name);
    const std::vector<std::int32_t> ids = testing::Expected(name).ids("ids");
    testing::expect_same_bits_everywhere([&] { return everything(model, ids, Keep::everything); });
    EXPECT_TRUE(testing::same_bits(everything(model, ids, Keep::everything), everything(model, ids, Keep::inputs)));
  }
}

TEST(ModelGradients, TheWayThereIsTheForwardPass) {
  for (const std::string& name : gradient_names()) {
    SCOPED_TRACE(name);
    const Model model = Model::load(testing::families_folder() / name);
    const std::vector<std::int32_t> ids = testing::Expected(name).ids("ids");
    ModelPass pass(model, text_rows(ids));
    const View<const float, 2> resid = pass.forward();
    State state(model.config());
    Tensor<float, 2> expected({std::ssize(ids), model.config().width});
    forward(model, state, text_rows(ids), expected.view());
    const auto n = static_cast<std::size_t>(expected.size());
    EXPECT_TRUE(testing::same_bits(std::span<const float>(resid.data, n), std::span<const float>(expected.data(), n)));
  }
}

TEST(ModelGradients, ATextHasTheSameOnesBesideOthers) {
  const Model model = Model::load(testing::families_folder() / "mistral");
  const std::vector<std::int32_t> ids = testing::Expected("mistral").ids("ids");
  const std::span<const std::int32_t> first = std::span(ids).first(20), second = std::span(ids).subspan(20);
  const std::int64_t C = model.config().width;
  std::vector<float> up(ids.size() * static_cast<std::size_t>(C));
  testing::Numbers numbers(3);
  for (float& v : up) v = numbers.next();
  const auto back = [&](std::vector<Row> rows, std::int64_t begin) {
    ModelPass pass(model, std::move(rows));
    pass.forward();
    std::vector<float> d(up.begin() + begin * C, up.begin() + (begin + std::ssize(pass.rows())) * C);
    pass.backward({d.data(), {std::ssize(pass.rows()), C}}, nullptr);
    return d;
  };
  std::vector<float> alone = back(text_rows(first), 0);
  const std::vector<float> more = back(text_rows(second), 20);
  alone.insert(alone.end(), more.begin(), more.end());
  std::vector<Row> both = text_rows(first);
  for (const Row& row : text_rows(second, 1)) both.push_back(row);
  EXPECT_TRUE(testing::same_bits(alone, back(both, 0)));
}

// What a hidden row holds goes nowhere, and nothing comes back to it.
TEST(ModelGradients, AHiddenRowIsReadByNone) {
  for (const char* name : {"qwen3", "mistral", "gpt_neox"}) {
    SCOPED_TRACE(name);
    const Model model = Model::load(testing::families_folder() / name);
    std::vector<std::int32_t> ids = testing::Expected(name).ids("ids");
    ids.resize(12);
    constexpr std::int64_t kHidden = 5;
    const std::int64_t C = model.config().width, R = std::ssize(ids);
    std::vector<std::uint8_t> visible(ids.size(), 1);
    visible[kHidden] = 0;
    // The rows but the hidden one, and what comes back to all of them if only the others say something.
    const auto others = [&] {
      ModelPass pass(model, text_rows(ids), Keep::everything, {}, visible);
      const View<const float, 2> resid = pass.forward();
      std::vector<float> all;
      for (std::int64_t r = 0; r < R; ++r)
        if (r != kHidden) all.insert(all.end(), &resid(r, 0), &resid(r, 0) + C);
      Tensor<float, 2> d({R, C});
      for (std::int64_t r = 0; r < R; ++r) std::fill_n(&d(r, 0), C, r == kHidden ? 0.0f : 1.0f);
      pass.backward(d.view(), nullptr);
      for (std::int64_t c = 0; c < C; ++c) EXPECT_EQ(d(kHidden, c), 0.0f);
      all.insert(all.end(), d.data(), d.data() + d.size());
      return all;
    };
    const std::vector<float> before = others();
    ids[kHidden] = (ids[kHidden] + 1) % static_cast<std::int32_t>(model.config().vocabulary);
    EXPECT_TRUE(testing::same_bits(before, others()));
  }
}

// The loss along a direction of all weights, by central differences. Dropped edges are the same in every pass.
TEST(ModelGradients, WithDropoutAreThoseOfWhatWasKept) {
  const Model model = Model::load(testing::families_folder() / "qwen3");
  const std::vector<std::int32_t> ids = testing::Expected("qwen3").ids("ids");
  const auto loss_of = [&](const Model& m, Dropout dropout, Parameters* gradients) {
    ModelPass pass(m, text_rows(ids), Keep::everything, dropout);
    pass.forward();
    return pass.loss(next_tokens(ids), gradients);
  };
  const Dropout some{0.3f, 9};
  Parameters gradients(model.checkpoint(), Parameters::From::zeros), weights(model.checkpoint());
  const double with = loss_of(model, some, &gradients);
  EXPECT_NE(with, loss_of(model, {}, nullptr));
  EXPECT_NE(with, loss_of(model, {0.3f, 10}, nullptr));
  EXPECT_EQ(loss_of(model, {0, 9}, nullptr), loss_of(model, {}, nullptr));
  double size = 0;
  for (const float g : gradients.values()) size += double{g} * g;
  size = std::sqrt(size);
  const std::vector<float> before(weights.values().begin(), weights.values().end());
  const auto moved = [&](double by) {
    for (std::size_t i = 0; i < before.size(); ++i)
      weights.values()[i] = static_cast<float>(before[i] + by * gradients.values()[i] / size);
    return loss_of(Model(weights.checkpoint(model.config(), model.checkpoint().tokenizer)), some, nullptr);
  };
  constexpr double h = 1.0 / 64;
  const double wide = (moved(h) - moved(-h)) / (2 * h), narrow = (moved(h / 2) - moved(-h / 2)) / h;
  // What is left of h^2, and the rounding of two losses.
  EXPECT_NEAR(narrow, size, std::fabs(wide - narrow) + 2 * with * 0x1p-22 / h);
}

TEST(ModelGradients, RefuseByName) {
  for (const auto& [name, what] : std::map<std::string, std::string>{{"gpt_oss", "mixture"},
                                                                     {"qwen3_moe", "mixture"},
                                                                     {"t5", "source"},
                                                                     {"opt_post_norm", "projection"},
                                                                     {"bert", "transform"}}) {
    const Model model = Model::load(testing::families_folder() / name);
    testing::expect_error(ErrorCode::unsupported, {what, model.config().family}, [&] {
      ModelPass(model, {{0, 0, 0}});
    });
  }
  const Model model = Model::load(testing::families_folder() / "llama");
  testing::expect_error(ErrorCode::bad_input, {"row 1", "follow"}, [&] { ModelPass(model, {{0, 0, 0}, {0, 0, 2}}); });
  testing::expect_error(ErrorCode::bad_input, {"row 0", "follow"}, [&] { ModelPass(model, {{0, 1, 0}}); });
  testing::expect_error(ErrorCode::bad_input, {"1 rows, and 2"}, [&] {
    ModelPass(model, {{0, 0, 0}}, Keep::everything, {}, {1, 1});
  });
  testing::expect_error(ErrorCode::bad_input, {"token", "9999"}, [&] { ModelPass(model, {{9999, 0, 0}}).forward(); });
  ModelPass pass(model, {{1, 0, 0}});
  pass.forward();
  testing::expect_error(ErrorCode::bad_input, {"target"}, [&] { pass.loss(std::vector<std::int32_t>{-1}, nullptr); });
}

TEST(Parameters, AreTheModelTheyAreTakenFrom) {
  const Model model = Model::load(testing::families_folder() / "qwen2");
  const std::vector<std::int32_t> ids = testing::Expected("qwen2").ids("ids");
  const Parameters parameters(model.checkpoint());
  const Model again(parameters.checkpoint(model.config(), model.checkpoint().tokenizer));
  const auto run = [&](const Model& m) {
    ModelPass pass(m, text_rows(ids));
    const View<const float, 2> resid = pass.forward();
    return std::vector<float>(resid.data, resid.data + resid.size());
  };
  EXPECT_TRUE(testing::same_bits(run(model), run(again)));
  Parameters fresh(model.config());
  EXPECT_EQ(largest(fresh.values()), 0);
  EXPECT_EQ(fresh.at("token_embd.weight").shape[0], model.config().vocabulary);
  testing::expect_error(ErrorCode::not_found, {"blk.9.attn_q.weight"}, [&] { fresh.at("blk.9.attn_q.weight"); });
}

}  // namespace
}  // namespace regard
