#pragma once
// Something to move: one small head of attention with its numbers, and sliders that change some of them. The page
// computes the head again at every move; `checks` hold what the engine computes at some places, so that the two can be
// compared.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lesson/text.h"

namespace regard {

// Any size, row-major.
struct SmallMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> items;

  double& operator()(std::int64_t r, std::int64_t c) { return items[r * columns + c]; }
  double operator()(std::int64_t r, std::int64_t c) const { return items[r * columns + c]; }
};

// q = xq wq, k = xk wk, v = xv wv; rotated by their positions where `rotary` is set (pairs of channels, half apart);
// score = q k scale / temperature.
struct SmallHead {
  SmallMatrix xq, xk, xv;  // [T, C], [S, C], [S, C]
  SmallMatrix wq, wk, wv;  // [C, D], [C, D], [C, E]
  std::vector<double> query_positions, key_positions;
  double scale = 1, temperature = 1, key_scale = 1;  // key_scale multiplies k
  bool causal = false, rotary = false;
  // Where there is a target, the three matrices take one step of this size towards it first (lesson/learning.h).
  SmallMatrix target = {};  // [1, E] or empty
  double rate = 0;
};

struct Slider {
  // What it sets: "xq", "xk", "xv" with row and column; "query_positions", "key_positions" with a row; "temperature",
  // "key_scale", "causal", "rate". Positions are added to those of the head, everything else is put in its place.
  struct Target {
    std::string what;
    std::int64_t row = 0, column = 0;
    double factor = 1;  // on the slider's value
  };
  LessonText label;
  double low = 0, high = 1, step = 1, initial = 0;
  std::vector<Target> targets;
};

struct SmallHeadResult {
  SmallMatrix scores, weights, outputs;  // [T, S], [T, S], [T, E]
  std::optional<double> loss = {};       // where there is a target
};

struct Exploration {
  struct Check {
    std::vector<double> settings;  // of each slider
    SmallHeadResult result;        // the engine's
  };
  std::string id;
  LessonText caption;
  std::vector<std::string> readers, keys;  // labels of rows and keys
  SmallHead head;
  std::vector<Slider> sliders;
  std::vector<Check> checks;
};

// wk with key_scale in it: what makes the keys.
SmallMatrix key_weights(const SmallHead& head);
// The head with the sliders at `settings`.
SmallHead moved(const SmallHead& head, const std::vector<Slider>& sliders, const std::vector<double>& settings);
// By the engine's kernels.
SmallHeadResult run(const SmallHead& head);
// Fills in the checks: every combination of `places` places of each slider, its ends among them.
void check_on_a_grid(Exploration& exploration, int places);

}  // namespace regard
