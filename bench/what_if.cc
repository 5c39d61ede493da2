#include "what_if.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "intervention/experiment.h"
#include "intervention/sweep.h"
#include "intervention/sweep_plan.h"
#include "intervention/why.h"

namespace regard::bench {
namespace {

constexpr std::int64_t kTokens = 100, kWhyTokens = 30;
constexpr std::int64_t kCompared = 4;  // what-ifs that are also run whole

std::vector<std::int32_t> some_ids(const ModelConfig& c, std::int64_t n) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < n; ++i) ids.push_back(static_cast<std::int32_t>((i * 7919 + 13) % c.vocabulary));
  return ids;
}

// Multiply-adds of the linear layers that a what-if cannot do without: `edited` rows from where the edit is, `after`
// rows from the next layer on, in the last layer the last row only.
double must_do(const ModelConfig& c, std::int64_t layer, std::int64_t edited, std::int64_t after) {
  const double q = static_cast<double>(c.width * c.heads * c.head_dim),
               o = static_cast<double>(c.width * c.heads * c.value_dim);
  const double kv = static_cast<double>(c.width * c.kv_heads * (c.head_dim + c.value_dim));
  const double mlp = static_cast<double>(c.width * c.hidden * (c.gated ? 3 : 2));
  if (layer == c.layers - 1) return o + mlp;
  const auto here = static_cast<double>(edited), rows = static_cast<double>(after);
  return here * (o + mlp) + rows * (q + kv + o + mlp) * static_cast<double>(c.layers - 2 - layer) + rows * kv + q + o +
         mlp;
}

// What `why` asks of a text without a contrast: each key hidden from the last row and from all later rows, each head's
// z set to 0 in all rows.
double why_must_do(const ModelConfig& c, std::int64_t tokens) {
  double sum = 0;
  for (std::int64_t key = 0; key < tokens - 1; ++key) {
    sum += must_do(c, 0, 1, 1) + must_do(c, 0, tokens - 1 - key, tokens - 1 - key);
  }
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    sum += static_cast<double>(c.heads) * must_do(c, layer, tokens, tokens);
  return sum;
}

struct Case {
  const char *name, *edit, *each;
  std::int64_t step;  // every so many what-ifs are run
  bool later_rows;
};

void sweep_lines(const Model& model, const std::string& shape, const Case& what,
                 const std::function<void(const Line&)>& each) {
  const ModelConfig& c = model.config();
  const Edit edit = parse_edit(what.edit);
  const Experiment experiment(
      model, {.ids = some_ids(c, kTokens), .runs = {}, .edits = {edit}, .metric = {}, .sites = Sweep::sites()}, true);
  const SweepPlan plan({edit}, what.each, c, experiment.runs());
  const std::vector<std::int64_t> all = plan.matching();
  std::vector<std::int64_t> chosen;
  double work = 0;
  for (std::size_t i = static_cast<std::size_t>(what.step) / 2; i < all.size();
       i += static_cast<std::size_t>(what.step)) {
    chosen.push_back(all[i]);
    const Cells cells = plan.cells(all[i])[0];
    const std::int64_t layer = cells.layers[0], row = cells.positions[0];
    if (layer == c.layers - 1 && row != kTokens - 1) continue;  // nobody reads that row any more
    work += 2e-9 * must_do(c, layer, 1, what.later_rows ? kTokens - row : 1);
  }
  std::vector<double> values(chosen.size());
  Sweep sweep(model, experiment.clean(), experiment.measure(), {.batch_rows = 2048});
  const Measured m = measure(
      [&] {
        sweep.run(
            std::ssize(chosen), [&](std::int64_t i) { return plan.cells(chosen[i]); },
            [&](const WhatIfResult& one) { values[one.index] = one.value; });
      },
      work, Yardstick::fma_peak, 3);
  double error = 0, whole = 0;  // a sweep's bits are those of whole runs
  for (std::int64_t n = 0; n < kCompared; ++n) {
    const std::size_t i = chosen.size() * static_cast<std::size_t>(2 * n + 1) / (2 * kCompared);
    const std::vector<Cells> cells = plan.cells(chosen[i]);
    double value = 0;
    whole += seconds_of(
        [&] { value = whole_run(model, experiment.ids(), cells, experiment.measure(), kTokens - 1).result.value; });
    error = std::max(error, std::fabs(value - values[i]));
  }
  const std::string sized = shape + fmt::format(", {} tokens, {} of {} what-ifs", kTokens, chosen.size(), all.size());
  each({what.name, sized, "GFLOP/s", m.figure, m.peak, m.fraction, error});
  const double per_second = static_cast<double>(chosen.size()) / m.seconds;
  each({std::string(what.name) + ", rate", sized, "what-ifs/s", per_second});
  each({std::string(what.name) + ", beside whole runs", sized, "x",
        per_second * whole / static_cast<double>(kCompared)});
}

}  // namespace

void what_if_lines(const std::string& path, const std::string& filter, const std::function<void(const Line&)>& each) {
  const Case cases[] = {{"sweep zero z", "zero z", "layer,head,row", 113, true},
                        {"sweep block edge", "block edge row=-1", "layer,head,key", 11, false}};
  std::optional<Model> model;
  const auto loaded = [&]() -> const Model& {
    if (!model) model.emplace(Model::load(path));
    return *model;
  };
  const auto shape = [&] { return loaded().config().name.empty() ? path : loaded().config().name; };
  for (const Case& what : cases)
    if (std::string(what.name).find(filter) != std::string::npos) sweep_lines(loaded(), shape(), what, each);
  if (std::string("why").find(filter) == std::string::npos) return;
  const WhyRequest request{.ids = some_ids(loaded().config(), kWhyTokens), .contrast = {}, .metric = {}};
  const std::string sized =
      shape() + fmt::format(", {} tokens, {} what-ifs", kWhyTokens, what_ifs_of(request, loaded().config()));
  const Measured m = measure([&] { why(loaded(), request); }, 2e-9 * why_must_do(loaded().config(), kWhyTokens),
                             Yardstick::fma_peak, 1);
  each({"why", sized, "s", m.seconds});
  each({"why, products", sized, "GFLOP/s", m.figure, m.peak, m.fraction});
}

}  // namespace regard::bench
