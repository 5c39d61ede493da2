#include "intervention/why.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "intervention/gradient_reading.h"
#include "intervention/row_readings.h"
#include "intervention/sweep.h"
#include "tensor/error.h"

namespace regard {
namespace {

// One kind of what-if: an edit for each place of `out`.
struct Kind {
  std::string named;  // in the receipts
  double* out = nullptr;
  std::int64_t count = 0;
  std::function<std::vector<std::string>(std::int64_t)> edits;  // none: there is no such what-if
};

struct WhatIf {
  const Kind* kind;
  std::int64_t place;
};

// What of a text the metric can depend on: positions [0, seen), read by rows [0, seen).
struct Scope {
  std::int64_t row = 0, seen = 0;  // row: -1 for a metric of all rows
  bool causal = true;

  Scope(const WhyRequest& request, const ModelConfig& config) : causal(config.causal) {
    const std::int64_t tokens = std::ssize(request.ids);
    const bool all = of_all_rows(request.metric.kind);
    row = all ? -1 : request.row < 0 ? request.row + tokens : request.row;
    seen = all || !causal ? tokens : row + 1;
  }
  bool hides_from_row(std::int64_t s) const { return row >= 0 && s < seen && s != row; }
  bool hides_from_all(std::int64_t s) const { return causal ? s + 1 < seen : s < seen && seen > 1; }
  bool can_be_hidden(std::int64_t s) const { return hides_from_row(s) || hides_from_all(s); }
  // The rows that may read s and reach the metric, but s itself.
  std::string other_rows(std::int64_t s) const {
    std::string rows;
    if (!causal && s > 0) rows = fmt::format("0:{}", s);
    if (s + 1 < seen) rows += fmt::format("{}{}:{}", rows.empty() ? "" : ",", s + 1, seen);
    return rows;
  }
};

// All, or the `most` that can be hidden whose screened change is largest, the first of equal ones.
std::vector<bool> chosen_positions(const Scope& scope, const std::vector<double>& screened, std::int64_t most,
                                   std::int64_t tokens) {
  if (screened.empty()) return std::vector<bool>(static_cast<std::size_t>(tokens), true);
  std::vector<std::int64_t> order;
  for (std::int64_t s = 0; s < tokens; ++s)
    if (scope.can_be_hidden(s)) order.push_back(s);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return std::fabs(screened[a]) > std::fabs(screened[b]); });
  std::vector<bool> chosen(static_cast<std::size_t>(tokens));
  for (std::int64_t i = 0; i < std::min(most, std::ssize(order)); ++i) chosen[order[i]] = true;
  return chosen;
}

}  // namespace

std::int64_t what_ifs_of(const WhyRequest& request, const ModelConfig& config) {
  const Scope scope(request, config);
  const std::int64_t tokens = std::ssize(request.ids);
  std::int64_t count = 0;
  std::int64_t positions = 0;
  for (std::int64_t s = 0; s < tokens && positions < request.confirm.value_or(tokens); ++s) {
    count += scope.hides_from_row(s) + scope.hides_from_all(s);
    positions += !request.confirm || scope.can_be_hidden(s);
  }
  return count + (request.contrast.empty() ? 0 : 3 * positions) + (request.heads ? config.layers * config.heads : 0);
}

WhyResult why(const Model& model, const WhyRequest& request, Progress* progress) {
  const ModelConfig& config = model.config();
  const std::int64_t T = std::ssize(request.ids), L = config.layers, H = config.heads;
  ExperimentRequest wanted{.ids = request.ids,
                           .runs = {},
                           .edits = {},
                           .metric = request.metric,
                           .row = request.row,
                           .contrast_row = request.contrast_row,
                           .sites = Sweep::sites()};
  if (!request.contrast.empty()) {
    if (std::ssize(request.contrast) != T)
      throw Error(ErrorCode::usage,
                  fmt::format("the contrast has {} tokens and the text {}", request.contrast.size(), T),
                  "choose one that splits into as many tokens (regard tokens shows how a text splits)");
    wanted.runs["contrast"] = request.contrast;
    wanted.edits = {parse_edit("patch k from=contrast"), parse_edit("patch v from=contrast")};
  }
  const Experiment experiment(model, std::move(wanted), true, progress);

  const Scope scope(request, config);
  WhyResult result;
  result.row = scope.row;
  result.seen = scope.seen;
  result.metric = experiment.measure().metric();
  result.base = experiment.measure().base();
  result.contrast = experiment.contrast();
  const RowReadings readings = read_row(model, request.ids, scope.row < 0 ? std::nullopt : std::optional(scope.row));
  result.attention = readings.attention;
  result.rollout = readings.rollout;
  result.norm_weighted = readings.norm_weighted;

  if (request.confirm) result.screened = read_gradients(model, request.ids, result.metric, scope.row).hidden;
  const std::vector<bool> chosen = chosen_positions(scope, result.screened, request.confirm.value_or(T), T);
  std::vector<Kind> kinds;
  using Edits = std::vector<std::string>;
  const auto by_key = [&](std::string named, std::vector<double>& out, auto edits) {
    out.assign(static_cast<std::size_t>(T), kNoWhatIf);
    kinds.push_back(
        {std::move(named), out.data(), T, [&chosen, edits](std::int64_t s) { return chosen[s] ? edits(s) : Edits{}; }});
  };
  by_key("block edge row=R key=S", result.hide_from_last, [&](std::int64_t s) {
    return scope.hides_from_row(s) ? Edits{fmt::format("block edge row={} key={}", scope.row, s)} : Edits{};
  });
  if (scope.row < 0) kinds.pop_back();  // there is no one row to hide it from
  by_key(scope.causal ? "block edge row=S+1: key=S" : "block edge row=0:S,S+1: key=S", result.hide_from_all,
         [&](std::int64_t s) {
           return scope.hides_from_all(s) ? Edits{fmt::format("block edge row={} key={}", scope.other_rows(s), s)}
                                          : Edits{};
         });
  // No row that the metric sees reads these by way of another: hiding them there changes nothing.
  for (std::int64_t s = 0; s < T; ++s)
    if (!scope.hides_from_all(s)) result.hide_from_all[s] = 0;
  if (!request.contrast.empty()) {
    const auto keys = [](std::int64_t s) { return fmt::format("patch k from=contrast key={}", s); };
    const auto values = [](std::int64_t s) { return fmt::format("patch v from=contrast key={}", s); };
    by_key("patch k from=contrast key=S", result.keys_only, [&, keys](std::int64_t s) { return Edits{keys(s)}; });
    by_key("patch v from=contrast key=S", result.values_only, [&, values](std::int64_t s) { return Edits{values(s)}; });
    by_key("patch k, patch v from=contrast key=S", result.both, [&, keys, values](std::int64_t s) {
      return Edits{keys(s), values(s)};
    });
  }
  if (request.heads) {
    result.zero_z = Tensor<double, 2>({L, H});
    kinds.push_back({"zero z layer=L head=H", result.zero_z.data(), L * H,
                     [H](std::int64_t i) { return Edits{fmt::format("zero z layer={} head={}", i / H, i % H)}; }});
  }

  std::vector<WhatIf> what_ifs;
  for (const Kind& kind : kinds) {
    result.receipts.push_back({kind.named, {}});
    for (std::int64_t place = 0; place < kind.count; ++place)
      if (!kind.edits(place).empty()) what_ifs.push_back({&kind, place});
  }
  result.what_ifs = std::ssize(what_ifs);
  Sweep sweep(model, experiment.clean(), experiment.measure(),
              {.row = experiment.row(), .batch_rows = request.batch_rows, .progress = progress});
  const auto cells = [&](std::int64_t i) {
    std::vector<Edit> edits;
    for (const std::string& text : what_ifs[i].kind->edits(what_ifs[i].place)) edits.push_back(parse_edit(text));
    return experiment.resolve(edits);
  };
  sweep.run(result.what_ifs, cells, [&](const WhatIfResult& one) {
    const WhatIf& what_if = what_ifs[one.index];
    what_if.kind->out[what_if.place] = one.value - result.base;
    Receipt& sum = result.receipts[what_if.kind - kinds.data()].second;
    for (const Receipt& receipt : one.receipts) sum += receipt;
  });
  return result;
}

}  // namespace regard
