#pragma once
// Sweeps of a model and whole runs of the same what-ifs.

#include <gtest/gtest.h>

#include "intervention/experiment.h"
#include "intervention/sweep.h"
#include "support/targets.h"
#include "support/tiny_model.h"

namespace regard {

using testing::Numbers;
using testing::same_bits;

// Every action at every site that it has.
inline const char* const kKinds[] = {"block edge",
                                     "scale edge by=0.5",
                                     "scale edge by=3",
                                     "scale z by=-2",
                                     "scale v by=0.5",
                                     "scale attn_out by=0",
                                     "scale mlp_out by=1.5",
                                     "zero z",
                                     "zero v",
                                     "zero attn_out",
                                     "zero mlp_out",
                                     "zero resid_pre",
                                     "zero resid_post",
                                     "mean z",
                                     "mean v",
                                     "mean attn_out",
                                     "mean mlp_out",
                                     "mean resid_pre",
                                     "mean resid_post",
                                     "mean z from=other",
                                     "patch k from=other",
                                     "patch v from=other",
                                     "patch q from=other",
                                     "patch z from=other",
                                     "patch pattern from=other",
                                     "patch attn_out from=other",
                                     "patch mlp_out from=other",
                                     "patch resid_pre from=other",
                                     "patch resid_post from=other",
                                     "freeze pattern",
                                     "uniform pattern",
                                     "permute pattern seed=7"};

class Sweeps {
 public:
  // row: where the metric is measured.
  Sweeps(const std::filesystem::path& path, std::int64_t tokens, Metric metric, std::int64_t row = -1)
      : model_(Model::load(path)),
        tokens_(tokens),
        row_(row < 0 ? row + tokens : row),
        ids_(testing::some_ids(tokens, model_.config().vocabulary)),
        other_(testing::some_ids(tokens, model_.config().vocabulary, 2)) {
    std::vector<Edit> all;
    for (const char* kind : kKinds) all.push_back(parse_edit(kind));
    experiment_ = std::make_unique<Experiment>(model_,
                                               ExperimentRequest{.ids = ids_,
                                                                 .runs = {{"other", other_}},
                                                                 .edits = all,
                                                                 .metric = std::move(metric),
                                                                 .row = row_,
                                                                 .sites = Sweep::sites()},
                                               true);
  }

  // A few cells of a kind, somewhere.
  Edit somewhere(std::string_view kind, Numbers& numbers) {
    Edit edit = parse_edit(kind);
    const ModelConfig& c = model_.config();
    const auto choose = [&](Selector selector, std::int64_t count) {
      if (!has(edit.site, selector) || numbers.below(5) == 0) return;
      const std::int64_t a = numbers.below(count), b = numbers.below(count);
      edit.at(selector) =
          numbers.below(2) == 0 ? std::to_string(a) : fmt::format("{}:{}", std::min(a, b), std::max(a, b) + 1);
    };
    choose(Selector::layer, c.layers);
    choose(Selector::head, c.heads);
    choose(Selector::kv_head, c.kv_heads);
    choose(Selector::row, tokens_);
    choose(Selector::key, tokens_);
    return edit;
  }

  std::vector<std::vector<Cells>> what_ifs(std::string_view kind, std::int64_t count) {
    std::vector<std::vector<Cells>> all;
    Numbers numbers(std::hash<std::string_view>()(kind));
    while (std::ssize(all) < count) {
      std::vector<Edit> edits = {somewhere(kind, numbers)};
      // To freeze what nothing changes is to change nothing.
      if (edits[0].action == Action::freeze) edits.push_back(parse_edit("scale mlp_out by=1.5 layer=0"));
      all.push_back(experiment_->resolve(edits));
    }
    return all;
  }

  std::vector<double> swept(const std::vector<std::vector<Cells>>& all, std::int64_t batch_rows = 1024) {
    std::vector<double> values(all.size());
    Sweep sweep(model_, experiment_->clean(), experiment_->measure(), {.row = row_, .batch_rows = batch_rows});
    sweep.run(
        std::ssize(all), [&](std::int64_t i) { return all[i]; },
        [&](const WhatIfResult& one) { values[one.index] = one.value; });
    return values;
  }
  std::vector<double> whole(const std::vector<std::vector<Cells>>& all) {
    std::vector<double> values;
    for (const auto& cells : all)
      values.push_back(whole_run(model_, ids_, cells, experiment_->measure(), row_).result.value);
    return values;
  }

  Model model_;
  std::int64_t tokens_, row_;
  std::vector<std::int32_t> ids_, other_;
  std::unique_ptr<Experiment> experiment_;
};

}  // namespace regard
