// Every family against float64 values that the public implementation gave: tests/data/families. Law 1 at every site
// with the public implementation's own float32 error as the yardstick, and law 3.
//
// With REGARD_PARITY=FILE in the environment, a line per family and kind of site is added to FILE, of which
// tools/parity_table makes docs/parity.md.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "model/source.h"
#include "support/families.h"
#include "support/targets.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace regard {
namespace {

using testing::Expected;
using Values = std::map<std::string, std::vector<float>>;

// What cross attention of a layer reads of the source, [S, G * channels].
std::vector<float> source_rows(const Rows& rows, std::int64_t length, std::int64_t channels) {
  std::vector<float> all;
  for (std::int64_t j = 0; j < length; ++j) {
    const auto* row = reinterpret_cast<const float*>(rows.row(j));
    all.insert(all.end(), row, row + channels);
  }
  return all;
}

// The source encoded and laid where the decoder reads it, with all that shows on the way.
Values read_source(const Model& model, State& state, const std::vector<std::int32_t>& ids) {
  const Model& encoder = *model.encoder();
  testing::Recorder recorder(encoder, std::ssize(ids), "encoder.");
  const Tensor<float, 2> encoded = encode(encoder, ids, &recorder);
  set_source(model, state, encoded.view());
  Values values = recorder.all();
  values["encoder.final"] = {encoded.data(), encoded.data() + encoded.size()};
  const ModelConfig& config = model.config();
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const Sequence source = state.source->view(0, l, std::ssize(ids));
    const std::string place = "decoder." + std::to_string(l);
    values[place + ".cross_k"] = source_rows(source.k, source.length, config.kv_heads * config.head_dim);
    values[place + ".cross_v"] = source_rows(source.v, source.length, config.kv_heads * config.value_dim);
  }
  return values;
}

// All sites and the logits of every row.
Values run(const Model& model, const Expected& expected, std::int64_t chunk) {
  State state(model.config());
  Values values;
  if (model.encoder() != nullptr) values = read_source(model, state, expected.ids("source_ids"));
  const auto ids = expected.ids(model.encoder() != nullptr ? "target_ids" : "ids");
  testing::Recorder recorder(model, std::ssize(ids), model.encoder() != nullptr ? "decoder." : "blocks.");
  if (model.config().head) {
    values["logits"] = testing::all_logits(model, state, ids, chunk, 0, &recorder);
  } else {
    FeedOptions options;
    options.chunk = chunk;
    options.tap = &recorder;
    feed(model, state, ids, 0, options);
  }
  values.merge(recorder.all());
  return values;
}

void expect_same(const Values& a, const Values& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_TRUE(testing::same_bits(value, b.at(name))) << name;
  }
}

// What one kind of site came to, over all layers.
struct Parity {
  double error = 0, allowed = 0, err32 = 0;
};

class Families : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder() const { return testing::families_folder() / GetParam(); }

  // The largest error of a value; says where the first one is that is too large.
  void compare(const std::string& kind, const std::string& name, const Values& values) {
    ASSERT_TRUE(values.contains(name)) << GetParam() << " announces no " << name;
    const std::vector<float>& got = values.at(name);
    const std::vector<double> truth = expected_.values(name);
    ASSERT_EQ(got.size(), truth.size()) << name;
    Parity& parity = parities_[kind];
    parity.err32 = expected_.err32(kind);
    double largest = 0;
    for (const double v : truth) largest = std::max(largest, std::fabs(v));
    const bool pattern = kind.ends_with("pattern");
    // Where the public implementation makes no error, as in a row of a table, there is still the last place of f32; and
    // patterns are stored in steps of 2^-30.
    const double half_ulp = std::ldexp(1.0, std::ilogb(std::max(largest, 1e-30)) - 24);
    const double allowed = (parity.err32 > 0 ? 2 * parity.err32 : half_ulp) + (pattern ? 0x1p-31 : 0);
    const std::size_t row_size = pattern ? tokens() : truth.size() / tokens();  // [H, T, S]; the rest [T, ...]
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const double error = std::fabs(got[i] - truth[i]);
      parity.error = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(parity.error, error);
      if (!(error <= allowed) && wrong++ == 0) first = i;
    }
    EXPECT_EQ(wrong, 0U) << GetParam() << " " << name << ", position " << first / row_size % tokens() << ", "
                         << (pattern ? "key " : "channel ") << first % row_size << ": " << got[first] << ", not "
                         << truth[first] << " (largest error " << parity.error << ", allowed " << allowed << ")";
  }

  // In the order in which they are computed, so that the first to fail is where it went wrong.
  void compare_sites(const Values& got, const std::string& prefix, std::int64_t layers) {
    for (std::int64_t l = 0; l < layers; ++l) {
      int compared = 0;
      for (const char* site :
           {"resid_pre", "rot_q", "rot_k", "v", "pattern", "z", "attn_out", "cross_q", "cross_k", "cross_v",
            "cross_pattern", "cross_z", "cross_out", "mlp_post", "mlp_out", "resid_post"}) {
        const std::string place = prefix + std::to_string(l) + "." + site;
        if (!expected_.has(place)) continue;
        compare((prefix == "blocks." ? "" : prefix) + site, place, got);
        ++compared;
      }
      EXPECT_GE(compared, 8) << prefix << l;  // a mixture has no mlp_post, and but the last layer no resid_post
    }
  }

  std::size_t tokens() const { return expected_.ids(expected_.has("ids") ? "ids" : "target_ids").size(); }

  void write_parity(const Model& model, const char* file) const {
    std::string stored;
    std::int64_t bytes = 0;
    for (const auto& [type, as] : model.checkpoint().stored)
      if (as.bytes > bytes) bytes = as.bytes, stored = info(type).name;
    std::ofstream out(file, std::ios::app);
    for (const auto& [kind, parity] : parities_)
      out << GetParam() << '\t' << stored << '\t' << kind << '\t' << tokens() << '\t' << parity.error << '\t'
          << parity.err32 << '\t' << (parity.err32 > 0 ? parity.error / parity.err32 : 0) << '\n';
  }

  Expected expected_{GetParam()};
  std::map<std::string, Parity> parities_;
};

TEST_P(Families, EverySite) {
  const Model model = Model::load(folder());
  const Values got = run(model, expected_, 512);
  if (model.encoder() != nullptr) {
    compare_sites(got, "encoder.", model.encoder()->config().layers);
    if (expected_.has("encoder.final")) compare("encoder.final", "encoder.final", got);
  }
  compare_sites(got, model.encoder() != nullptr ? "decoder." : "blocks.", model.config().layers);
  ASSERT_EQ(model.config().head, expected_.has("logits"));
  if (expected_.has("logits")) compare("logits", "logits", got);
  if (const char* file = std::getenv("REGARD_PARITY")) write_parity(model, file);
}

// Prompt, decode, chunks, threads, instruction sets, packed weights: one value per number. What reads in both
// directions passes whole whatever the chunk.
TEST_P(Families, SameBits) {
  const Model model = Model::load(folder());
  const Model packed = Model::load(folder(), Packing::all);
  const Values once = run(model, expected_, 512);
  testing::on_each_target([&](const std::string&) {
    for (const int threads : {1, 2}) {
      set_thread_count(threads);
      for (const std::int64_t chunk : {1, 7, 64}) {
        SCOPED_TRACE(std::to_string(threads) + " threads, chunks of " + std::to_string(chunk));
        expect_same(once, run(model, expected_, chunk));
      }
      expect_same(once, run(packed, expected_, 1));
    }
  });
}

// config.old.json and model.old.safetensors, where they are: the same model in the words of earlier versions.
TEST_P(Families, OlderWords) {
  const Values expected = run(Model::load(folder()), expected_, 512);
  const std::vector<std::string> newer = {"config.json", "model.safetensors"};
  const std::vector<std::string> older = {"config.old.json", "model.old.safetensors"};
  for (int i : {0, 1}) {
    if (!std::filesystem::exists(folder() / older[i])) continue;
    SCOPED_TRACE(older[i]);
    const testing::TempFolder made;
    std::filesystem::copy_file(folder() / older[i], made / newer[i]);
    std::filesystem::copy_file(folder() / newer[1 - i], made / newer[1 - i]);
    expect_same(expected, run(Model::load(made.path()), expected_, 512));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Families, ::testing::ValuesIn(testing::family_names()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace regard
