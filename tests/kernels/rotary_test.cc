#include "kernels/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>

#include "kernels/reference.h"
#include "support/targets.h"
#include "tensor/error.h"

namespace regard {
namespace {

using testing::Numbers;
using testing::same_bits;

struct Case {
  RotaryConfig config;
  std::int64_t length = 0;
};

std::vector<double> ascending(std::int64_t n, double step) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + step * static_cast<double>(i);
  return values;
}

RotaryConfig config(RotaryScaling scaling, double base, std::int64_t dim, double factor = 1) {
  RotaryConfig c;
  c.scaling = scaling;
  c.base = base;
  c.dim = dim;
  c.factor = factor;
  return c;
}

// The cases of tests/data/rotary/make.py by their names.
std::map<std::string, Case> cases() {
  using enum RotaryScaling;
  std::map<std::string, Case> all;
  all["none"].config = config(none, 1e4, 128);
  all["none_1e5_64"].config = config(none, 1e5, 64);
  all["none_small"].config = config(none, 500, 6);
  all["linear"].config = config(linear, 1e6, 256, 8);
  for (auto [name, length] : {std::pair{"dynamic_within", 77}, {"dynamic_beyond", 16384}}) {
    all[name] = {config(dynamic_ntk, 1e4, 128, 10), length};
    all[name].config.context = 2048;
  }
  all["dynamic_partial"] = {config(dynamic_ntk, 1e4, 32, 2), 5000};
  all["dynamic_partial"].config.context = 4096;
  for (auto [name, dim, factor] : {std::tuple{"llama3", 128, 8.0}, {"llama3_small", 64, 32.0}}) {
    all[name].config = config(llama3, 5e5, dim, factor);
    all[name].config.original_context = 8192;
  }
  const auto add_yarn = [&](const char* name, double base, std::int64_t dim, double factor,
                            std::int64_t context) -> RotaryConfig& {
    all[name].config = config(yarn, base, dim, factor);
    all[name].config.original_context = context;
    return all[name].config;
  };
  add_yarn("yarn", 1e4, 128, 10, 2048);
  add_yarn("yarn_gpt_oss", 150000, 64, 32, 4096).truncate = false;
  RotaryConfig& two = add_yarn("yarn_mscale", 1e4, 64, 40, 4096);
  two.mscale = 1, two.mscale_all_dim = 0.707;
  add_yarn("yarn_one_mscale", 1e4, 64, 40, 4096).mscale = 1;
  add_yarn("yarn_attention", 1e6, 96, 16, 2048).attention_factor = 0.5;
  RotaryConfig& betas = add_yarn("yarn_betas", 1e4, 128, 4, 0);
  betas.context = 2048, betas.beta_fast = 1000, betas.beta_slow = 2;  // no original context: the context
  add_yarn("yarn_short_context", 1e4, 64, 4, 5);
  add_yarn("yarn_shrunk", 1e4, 64, 0.5, 2048);
  for (const char* name : {"longrope_short", "longrope_long", "longrope_attention", "longrope_not_longer"}) {
    all[name] = {config(longrope, 1e4, 96, 32), 4097};
    all[name].config.original_context = 4096;
    all[name].config.short_factors = ascending(48, 0.01);
    all[name].config.long_factors = ascending(48, 0.5);
  }
  all["longrope_short"].length = 4096;
  all["longrope_long"].config.context = 131072, all["longrope_long"].config.factor = 7;  // the ratio of contexts counts
  all["longrope_attention"].config.attention_factor = 1.25;
  all["longrope_not_longer"].config.factor = 1;
  all["divisors"].config = config(none, 5e5, 64);
  all["divisors"].config.frequency_divisors = ascending(32, 0.5);
  return all;
}

std::vector<std::pair<std::string, std::vector<double>>> read_lines(const char* file) {
  std::ifstream in(std::string(REGARD_TEST_DATA) + "/rotary/" + file);
  std::vector<std::pair<std::string, std::vector<double>>> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    auto& [name, values] = lines.emplace_back();
    words >> name;
    for (double value; words >> value;) values.push_back(value);
  }
  return lines;
}

TEST(RotaryFrequencies, EqualAnIndependentEvaluation) {
  std::map<std::string, Case> left = cases();
  for (const auto& [name, values] : read_lines("frequencies.txt")) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(left.contains(name));
    const RotaryFrequencies f = rotary_frequencies(left[name].config, left[name].length);
    ASSERT_EQ(values.size(), f.inverse.size() + 1);
    // A power, a logarithm and a handful of operations in double. The ramp of yarn may cancel.
    EXPECT_NEAR(f.attention_factor, values[0], 1e-15 * values[0]);
    for (std::size_t i = 0; i < f.inverse.size(); ++i) EXPECT_NEAR(f.inverse[i], values[i + 1], 1e-14 * values[i + 1]);
    left.erase(name);
  }
  EXPECT_TRUE(left.empty()) << left.begin()->first << " is not in the file";
}

TEST(RotaryFrequencies, EqualPublishedValues) {
  // The snapshots in transformers' test_modeling_rope_utils.py (Llama, 128 channels, base 10000, context 2048, factor
  // 10), five digits each.
  const auto close = [](double value, double published) { EXPECT_NEAR(value, published, 5e-5 * published); };
  const RotaryFrequencies plain = rotary_frequencies(cases()["none"].config, 0);
  close(plain.inverse[1], 8.6596e-01), close(plain.inverse[63], 1.1548e-04);
  const RotaryFrequencies ntk = rotary_frequencies(cases()["dynamic_beyond"].config, 16384);
  close(ntk.inverse[1], 8.0931e-01), close(ntk.inverse[32], 1.1473e-03), close(ntk.inverse[63], 1.6265e-06);
  const RotaryFrequencies yarn = rotary_frequencies(cases()["yarn"].config, 0);
  close(yarn.inverse[16], 1.0e-01), close(yarn.inverse[17], 8.3479e-02), close(yarn.inverse[30], 6.6143e-03);
  close(yarn.inverse[40], 4.3007e-04), close(yarn.inverse[63], 1.1548e-05);
}

// A head that holds (1, 0) in every pair turns into (cos, sin).
std::vector<float> cosines_and_sines(RotaryTable& table, std::int64_t position) {
  const std::int64_t pairs = table.config().dim / 2;
  std::vector<float> x(static_cast<std::size_t>(2 * pairs));
  const bool half = table.config().pairs == RotaryPairs::half;
  for (std::int64_t i = 0; i < pairs; ++i) x[static_cast<std::size_t>(half ? i : 2 * i)] = 1;
  table.rotate(View<float, 3>(x.data(), {1, 1, 2 * pairs}), &position);
  if (!half) return x;
  std::vector<float> together(x.size());
  for (std::size_t i = 0; i < x.size() / 2; ++i) together[2 * i] = x[i], together[2 * i + 1] = x[i + x.size() / 2];
  return together;
}

TEST(RotaryTable, CosinesAndSinesAreRightToAMillion) {
  for (RotaryPairs pairs : {RotaryPairs::half, RotaryPairs::interleaved}) {
    std::map<std::string, RotaryTable> tables;
    for (auto& [name, c] : cases()) {
      c.config.pairs = pairs;
      tables[name] = RotaryTable(c.config, c.length);
    }
    int lines = 0;
    for (const auto& [name, values] : read_lines("cosines.txt")) {
      const auto position = static_cast<std::int64_t>(values[0]);
      SCOPED_TRACE(fmt::format("{} at {}", name, position));
      const RotaryFrequencies f = rotary_frequencies(cases()[name].config, 0);
      const std::vector<float> turned = cosines_and_sines(tables[name], position);
      ASSERT_EQ(turned.size() + 1, values.size());
      for (std::size_t i = 0; i < turned.size(); ++i) {
        // One rounding to f32, and what an error of 2 ulp in the double `inverse` does to the angle.
        const double angle = values[0] * f.inverse[i / 2];
        const double allowed = 0x1p-24 * std::fabs(values[i + 1]) + 4 * 0x1p-53 * angle * f.attention_factor;
        EXPECT_NEAR(turned[i], values[i + 1], allowed) << "value " << i;
      }
      ++lines;
    }
    EXPECT_EQ(lines, 24);
  }
}

// R rows of H heads of D channels, positions in no order, some twice.
struct Heads {
  std::int64_t rows, heads, channels;
  std::vector<float> x;
  std::vector<std::int64_t> positions;

  Heads(std::int64_t rows, std::int64_t heads, std::int64_t channels, std::int64_t largest)
      : rows(rows), heads(heads), channels(channels) {
    Numbers numbers(17);
    x = numbers.vector(rows * heads * channels, 3);
    for (std::int64_t r = 0; r < rows; ++r) positions.push_back(numbers.below(largest + 1));
  }
  std::vector<float> rotated(RotaryTable& table) const {
    std::vector<float> y = x;
    table.rotate(View<float, 3>(y.data(), {rows, heads, channels}), positions.data());
    return y;
  }
  template <typename Real>
  std::vector<Real> reference(const RotaryConfig& config) const {
    std::vector<Real> y(x.size());
    reference::rotate<Real>(config, 0, View<const float, 3>(x.data(), {rows, heads, channels}), positions.data(),
                            View<Real, 3>(y.data(), {rows, heads, channels}));
    return y;
  }
};

RotaryConfig with_pairs(RotaryPairs pairs, std::int64_t dim) {
  RotaryConfig c = config(RotaryScaling::none, 1e4, dim);
  c.pairs = pairs;
  return c;
}

TEST(RotaryTable, Law1ForBothPairingsAndPartialRotation) {
  for (RotaryPairs pairs : {RotaryPairs::half, RotaryPairs::interleaved}) {
    for (std::int64_t dim : {2, 4, 6, 10, 16, 30, 48, 64, 80, 128, 256}) {
      for (std::int64_t rest : {0, 1, 32}) {
        SCOPED_TRACE(fmt::format("pairing {}, {} of {}", static_cast<int>(pairs), dim, dim + rest));
        const RotaryConfig c = with_pairs(pairs, dim);
        const Heads h(40, 3, dim + rest, 3000);
        RotaryTable table(c, 0);
        const std::vector<float> y = h.rotated(table);
        EXPECT_TRUE(testing::within_law_1(y, h.reference<float>(c), h.reference<double>(c)));
        for (std::size_t i = 0; i < y.size(); ++i) {
          if (static_cast<std::int64_t>(i) % h.channels >= dim) {
            EXPECT_EQ(y[i], h.x[i]) << "not to be rotated";
          }
        }
      }
    }
  }
}

TEST(RotaryTable, EachPairIsOneProductAndOneFma) {
  for (RotaryPairs pairs : {RotaryPairs::half, RotaryPairs::interleaved}) {
    RotaryTable table(with_pairs(pairs, 22), 0);
    const Heads h(5, 2, 22, 5000);
    const std::vector<float> y = h.rotated(table);
    std::vector<float> expected = h.x;
    for (std::int64_t r = 0; r < h.rows; ++r) {
      const std::vector<float> turn = cosines_and_sines(table, h.positions[static_cast<std::size_t>(r)]);
      for (std::int64_t head = 0; head < h.heads; ++head) {
        float* at = &expected[static_cast<std::size_t>((r * h.heads + head) * 22)];
        for (int i = 0; i < 11; ++i) {
          float& a = at[pairs == RotaryPairs::half ? i : 2 * i];
          float& b = at[pairs == RotaryPairs::half ? i + 11 : 2 * i + 1];
          const float cosine = turn[static_cast<std::size_t>(2 * i)], sine = turn[static_cast<std::size_t>(2 * i + 1)];
          const float turned = std::fma(a, cosine, -(b * sine));
          b = std::fma(b, cosine, a * sine);
          a = turned;
        }
      }
    }
    EXPECT_TRUE(same_bits(expected, y));
  }
}

TEST(RotaryTable, SameBitsOnEveryTargetThreadCountAndBatch) {
  for (RotaryPairs pairs : {RotaryPairs::half, RotaryPairs::interleaved}) {
    for (std::int64_t dim : {6, 20, 64}) {
      const Heads h(600, 4, dim + 3, 70000);  // past the table too
      const RotaryConfig c = with_pairs(pairs, dim);
      testing::expect_same_bits_everywhere([&] {
        RotaryTable table(c, 0);
        return h.rotated(table);
      });
      RotaryTable all(c, 0), one(c, 0);
      const std::vector<float> together = h.rotated(all);
      std::vector<float> apart = h.x;
      const View<float, 3> view(apart.data(), {h.rows, h.heads, h.channels});
      for (std::int64_t r = h.rows - 1; r >= 0; --r)
        one.rotate(view.slice(r, r + 1), &h.positions[static_cast<std::size_t>(r)]);
      EXPECT_TRUE(same_bits(together, apart));
    }
  }
}

TEST(RotaryTable, GrowingKeepsTheRowsThatWereThere) {
  const RotaryConfig c = with_pairs(RotaryPairs::half, 64);
  RotaryTable grown(c, 0);
  std::vector<std::vector<float>> before;
  for (std::int64_t p = 0; p < 300; ++p) before.push_back(cosines_and_sines(grown, p));  // 300 times one row more
  cosines_and_sines(grown, 40000);
  for (std::int64_t p = 0; p < 300; ++p)
    EXPECT_TRUE(same_bits(before[static_cast<std::size_t>(p)], cosines_and_sines(grown, p)));
  RotaryTable at_once(c, 0);
  const std::vector<float> late = cosines_and_sines(at_once, 39999);
  EXPECT_TRUE(same_bits(late, cosines_and_sines(grown, 39999)));
}

TEST(RotaryTable, TheEndOfTheTableDoesNotShow) {
  const RotaryConfig c = with_pairs(RotaryPairs::half, 8);
  RotaryTable table(c, 0);
  const Heads h(1, 1, 8, 0);
  for (std::int64_t p = RotaryTable::kTableRows - 2; p < RotaryTable::kTableRows + 2; ++p) {
    Heads at = h;
    at.positions = {p};
    EXPECT_LE(testing::max_error(at.rotated(table), at.reference<double>(c)), 3 * 0x1p-23) << p;
  }
}

TEST(RotaryTable, KeepsLengthsAndDependsOnDistanceOnly) {
  // <R_m q, R_n k> = <R_(m + s) q, R_(n + s) k>: what the positions are for (Su et al. 2021, equation 11).
  RotaryTable table(with_pairs(RotaryPairs::half, 64), 0);
  Numbers numbers(23);
  const std::vector<float> q = numbers.vector(64), k = numbers.vector(64);
  const auto dot = [&](std::int64_t m, std::int64_t n) {
    std::vector<float> a = q, b = k;
    table.rotate(View<float, 3>(a.data(), {1, 1, 64}), &m);
    table.rotate(View<float, 3>(b.data(), {1, 1, 64}), &n);
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  // 64 products of numbers below 2, each factor with three roundings
  EXPECT_NEAR(dot(0, 0), std::inner_product(q.begin(), q.end(), k.begin(), 0.0), 1e-12);
  for (std::int64_t shift : {1, 100, 30000, 900000})
    EXPECT_NEAR(dot(5, 17), dot(5 + shift, 17 + shift), 64 * 12 * 0x1p-24);
  EXPECT_GT(std::fabs(dot(5, 17) - dot(5, 18)), 1e-3);
}

TEST(RotaryTable, StridedHeads) {
  const Heads h(7, 3, 20, 100);
  RotaryTable table(with_pairs(RotaryPairs::interleaved, 20), 0);
  const std::vector<float> expected = h.rotated(table);
  std::vector<float> wide(7 * 3 * 25 + 7, 9.0f);
  const View<float, 3> view(wide.data(), {7, 3, 20}, {3 * 25 + 1, 25, 1});
  for (int r = 0; r < 7; ++r) {
    for (int head = 0; head < 3; ++head)
      std::copy_n(&h.x[static_cast<std::size_t>((r * 3 + head) * 20)], 20, &view(r, head, 0));
  }
  table.rotate(view, h.positions.data());
  std::vector<bool> inside(wide.size());
  for (int r = 0; r < 7; ++r) {
    for (int head = 0; head < 3; ++head) {
      for (int d = 0; d < 20; ++d) {
        EXPECT_EQ(view(r, head, d), expected[static_cast<std::size_t>((r * 3 + head) * 20 + d)]);
        inside[static_cast<std::size_t>(&view(r, head, d) - wide.data())] = true;
      }
    }
  }
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (!inside[i]) {
      EXPECT_EQ(wide[i], 9.0f) << "written between heads";
    }
  }
}

TEST(RotaryTable, NothingToRotate) {
  RotaryTable none;
  std::vector<float> x = {1, 2, 3, 4};
  std::int64_t position = 5;
  none.rotate(View<float, 3>(x.data(), {1, 1, 4}), &position);
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3, 4}));
  RotaryTable some(with_pairs(RotaryPairs::half, 4), 0);
  some.rotate(View<float, 3>(x.data(), {0, 1, 4}), &position);
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3, 4}));
}

template <typename Call>
void expect_refused(const char* what, Call&& call) {
  try {
    call();
    ADD_FAILURE() << what << ": nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::bad_input) << what;
    EXPECT_NE(e.message.find(what), std::string::npos) << e.message;
  }
}

TEST(RotaryTable, RefusesPositionsAndShapesThatDoNotFit) {
  RotaryTable table(with_pairs(RotaryPairs::half, 8), 0);
  std::vector<float> x(64);
  std::int64_t position = -1;
  expect_refused("position -1", [&] { table.rotate(View<float, 3>(x.data(), {1, 1, 8}), &position); });
  position = 1;
  expect_refused("8 channels", [&] { table.rotate(View<float, 3>(x.data(), {1, 1, 7}), &position); });
  expect_refused("2 apart", [&] { table.rotate(View<float, 3>(x.data(), {1, 1, 8}, {16, 16, 2}), &position); });
}

TEST(RotaryFrequencies, RefusesConfigurationsWithoutMeaning) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto refused = [&](const char* field, RotaryConfig c, auto&& spoil) {
    spoil(c);
    expect_refused(field, [&] { rotary_frequencies(c, 5000); });
  };
  const std::map<std::string, Case> good = cases();
  for (const auto& [name, c] : good) {
    SCOPED_TRACE(name);
    refused("dim", c.config, [](RotaryConfig& c) { c.dim = 7; });
    refused("dim", c.config, [](RotaryConfig& c) { c.dim = -2; });
    for (double bad : {nan, inf, 0.0, -10000.0}) refused("base", c.config, [&](RotaryConfig& c) { c.base = bad; });
    for (double bad : {nan, inf, 0.0, -1.0}) refused("factor", c.config, [&](RotaryConfig& c) { c.factor = bad; });
    refused("frequency_divisors", c.config, [](RotaryConfig& c) { c.frequency_divisors = {1, 2}; });
    refused("frequency_divisors", c.config, [](RotaryConfig& c) { c.frequency_divisors.assign(c.dim / 2, 0.0); });
  }
  refused("context", good.at("dynamic_beyond").config, [](RotaryConfig& c) { c.context = 0; });
  refused("dim", good.at("dynamic_beyond").config, [](RotaryConfig& c) { c.dim = 2; });
  refused("original_context", good.at("llama3").config, [](RotaryConfig& c) { c.original_context = 0; });
  refused("low_frequency_factor", good.at("llama3").config, [](RotaryConfig& c) { c.low_frequency_factor = 0; });
  refused("high_frequency_factor", good.at("llama3").config, [](RotaryConfig& c) { c.high_frequency_factor = 1; });
  refused("original_context", good.at("yarn").config, [](RotaryConfig& c) { c.original_context = 0; });
  refused("base", good.at("yarn").config, [](RotaryConfig& c) { c.base = 1; });
  refused("beta_fast", good.at("yarn").config, [](RotaryConfig& c) { c.beta_fast = 0; });
  refused("beta_slow", good.at("yarn").config, [](RotaryConfig& c) { c.beta_slow = -1; });
  refused("attention_factor", good.at("yarn").config, [&](RotaryConfig& c) { c.attention_factor = nan; });
  refused("long_factors", good.at("longrope_long").config, [](RotaryConfig& c) { c.long_factors.pop_back(); });
  refused("long_factors", good.at("longrope_long").config, [&](RotaryConfig& c) { c.long_factors[3] = nan; });
  refused("original_context", good.at("longrope_long").config, [](RotaryConfig& c) { c.original_context = 0; });
  refused("angle", good.at("none").config, [](RotaryConfig& c) { c.base = 1e-300; });
}

}  // namespace
}  // namespace regard
