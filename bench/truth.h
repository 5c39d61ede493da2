#pragma once
// The truth benchmark: sentences whose answers depend on a planted cause (training/micro_language.h), and how often
// each way of explaining an answer names it.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "parallel/progress.h"
#include "report/truth_report.h"
#include "training/default_recipe.h"

namespace regard::bench {

// What is compared. The last is a random order, as expected, so it has no scores of its own.
std::vector<TruthMethod> truth_methods();

// [method but the last][T]: how much each position matters, by each method's own measure, for logit(answer) -
// logit(otherwise) at the last row. Larger is more.
std::vector<std::vector<double>> truth_scores(const Model& model, const Question& question);

// Where a method puts the cause. Ranked are positions [1, T - 1): not the first, which is the attention sink, and not
// the last row itself; equal scores, and what is not a number, stand before the cause. carrier: -1 where there is none.
TruthScore truth_score(std::span<const double> scores, std::int64_t cause, std::int64_t carrier);
// The same as expected of a random order of T - 2 positions.
TruthScore random_truth_score(std::int64_t tokens, bool carrier);

// `count` held-out sentences of each kind in each language. Error{bad_input} for a model of another vocabulary than
// the micro-language's. progress: told sentences done.
TruthTable truth(const Model& model, std::int64_t count, Progress* progress = nullptr);

}  // namespace regard::bench
