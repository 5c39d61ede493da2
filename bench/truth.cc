#include "truth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "intervention/experiment.h"
#include "intervention/gradient_reading.h"
#include "intervention/sweep.h"
#include "intervention/why.h"
#include "model/forward.h"
#include "reading/reading_tap.h"
#include "tensor/error.h"

namespace regard::bench {
namespace {

using Scores = std::vector<double>;

constexpr std::int64_t kConfirmed = 4;  // of a screen, of texts of some 15 tokens

// What the answer loses by changes of the metric.
Scores losses(Scores changes) {
  for (double& change : changes) change = -change;
  return changes;
}
Scores sizes(Scores values) {
  for (double& value : values) value = std::fabs(value);
  return values;
}

// The weights of the last row, [layer][head][0][T].
Tensor<float, 4> last_row_weights(const Model& model, std::span<const std::int32_t> ids) {
  ReadingRequest request;
  request.statistics = {Statistic::weights};
  ReadingTap tap(model, request, ids);
  State state(model.config(), 1, std::ssize(ids));
  feed(model, state, ids, 0, {.tap = &tap, .on_rows = {}});
  return tap.finish().weights;
}

// What hiding takes away, of the few positions that a screen chooses; the others come last.
Scores screened(const Model& model, WhyRequest request) {
  request.confirm = kConfirmed;
  Scores scores = losses(why(model, request).hide_from_all);
  for (double& score : scores)
    if (std::isnan(score)) score = -std::numeric_limits<double>::infinity();
  return scores;
}

// The change of the metric when the values of one position are 0 in all layers, for each position.
Scores zero_values(const Model& model, const std::vector<std::int32_t>& ids, const Metric& metric) {
  const Experiment experiment(
      model, {.ids = ids, .runs = {}, .edits = {parse_edit("zero v")}, .metric = metric, .sites = Sweep::sites()},
      true);
  Scores changes(ids.size());
  Sweep sweep(model, experiment.clean(), experiment.measure(), {});
  sweep.run(
      std::ssize(ids),
      [&](std::int64_t s) { return experiment.resolve(std::vector{parse_edit(fmt::format("zero v key={}", s))}); },
      [&](const WhatIfResult& one) { changes[one.index] = one.value - experiment.measure().base(); });
  return changes;
}

}  // namespace

std::vector<TruthMethod> truth_methods() {
  return {
      {"hide_from_all", "exact: from all", "`why`: what the metric loses when no later row may read the position"},
      {"hide_from_all_size", "exact: from all, size",
       "the size of that change, whatever its sign: the order of `why`'s page"},
      {"hide_from_last", "exact: from last", "`why`: what it loses when the last row may not read it"},
      {"values_only", "exact: values only",
       "what it loses when its values are 0 in all layers (`zero v key=S`), its keys as they were"},
      {"attention_mean", "attention, mean", "the last row's weight on it, mean over layers and heads"},
      {"attention_max", "attention, max", "the last row's weight on it, the largest of all layers and heads"},
      {"attention_last_layer", "attention, last", "the last row's weight on it in the last layer, mean over heads"},
      {"rollout", "rollout", "attention rollout of the last row (Abnar & Zuidema 2020)"},
      {"norm_weighted", "norm-weighted",
       "the length of what it adds to the last row through all heads of a layer, mean over layers (Kobayashi 2020)"},
      {"gradient_x_input", "gradient x input", "the gradient of the metric times the embedding, its size"},
      {"gradient_x_input_signed", "gradient x in., signed", "the gradient of the metric times the embedding"},
      {"attribution_patching", "attribution patching",
       "exact: from all, to first order in what the heads hold, the softmax taken exactly (AtP*, Kramar 2024)"},
      {"screened", "exact: 4 of a screen",
       "`why --screen --confirm 4`: attribution patching chooses four positions, exact: from all orders them"},
      {"random", "random order", "what a random order is expected to reach"}};
}

std::vector<Scores> truth_scores(const Model& model, const Question& question) {
  const ModelConfig& c = model.config();
  const std::int64_t T = std::ssize(question.prompt);
  const Metric metric{.kind = MetricKind::diff, .token = question.answer, .against = question.otherwise};
  WhyRequest request{.ids = question.prompt, .contrast = {}, .metric = metric};
  request.heads = false;
  const WhyResult result = why(model, request);
  const GradientReading gradients = read_gradients(model, question.prompt, metric, -1);
  const Tensor<float, 4> weights = last_row_weights(model, question.prompt);
  Scores most(question.prompt.size()), last(question.prompt.size());
  for (std::int64_t l = 0; l < c.layers; ++l)
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t s = 0; s < T; ++s) {
        const double weight = weights(l, h, 0, s);
        most[s] = std::max(most[s], weight);
        if (l == c.layers - 1) last[s] += weight / static_cast<double>(c.heads);
      }
  return {losses(result.hide_from_all),
          sizes(result.hide_from_all),
          losses(result.hide_from_last),
          losses(zero_values(model, question.prompt, metric)),
          result.attention,
          most,
          last,
          result.rollout,
          result.norm_weighted,
          sizes(gradients.gradient_x_input),
          gradients.gradient_x_input,
          losses(gradients.hidden),
          screened(model, request)};
}

TruthScore truth_score(std::span<const double> scores, std::int64_t cause, std::int64_t carrier) {
  const auto rank = [&](std::int64_t of) {
    std::int64_t before = 0;
    for (std::int64_t s = 1; s + 1 < std::ssize(scores); ++s) before += s != of && !(scores[s] < scores[of]);
    return before + 1;
  };
  const bool first = rank(cause) == 1;
  return {.cause = first ? 1.0 : 0.0,
          .either = first || (carrier >= 0 && rank(carrier) == 1) ? 1.0 : 0.0,
          .reciprocal = 1 / static_cast<double>(rank(cause))};
}

TruthScore random_truth_score(std::int64_t tokens, bool carrier) {
  const std::int64_t n = tokens - 2;
  TruthScore score{
      .cause = 1 / static_cast<double>(n), .either = (carrier ? 2 : 1) / static_cast<double>(n), .reciprocal = 0};
  for (std::int64_t rank = 1; rank <= n; ++rank) score.reciprocal += 1 / static_cast<double>(rank * n);
  return score;
}

TruthTable truth(const Model& model, std::int64_t count, Progress* progress) {
  if (const auto words = std::ssize(micro_language_tokenizer().pieces); model.tokenizer().vocabulary() != words)
    throw Error(ErrorCode::bad_input,
                fmt::format("this model has {} tokens and the language of the benchmark {} words",
                            model.tokenizer().vocabulary(), words),
                "leave the model out for the default one, or name a folder that regard train made");
  TruthTable table{.model = {.name = model.config().name, .family = model.config().family, .config = model.config()},
                   .recipe = {},
                   .count = count,
                   .methods = truth_methods(),
                   .groups = {}};
  std::int64_t done = 0;
  for (const SentenceKind kind : kSentenceKinds)
    for (const Language language : {Language::english, Language::chinese}) {
      TruthGroup group{.kind = std::string(name(kind)),
                       .language = std::string(code(language)),
                       .asked = count,
                       .scores = std::vector<TruthScore>(table.methods.size())};
      std::set<std::uint64_t> facts;
      for (std::int64_t i = 0; i < count; ++i) {
        const Sentence said = sentence(kind, language, static_cast<std::uint64_t>(i), true);
        facts.insert(said.fact);
        const Question asked = question(model.tokenizer(), said);
        if (progress) progress->at("explaining sentences", done++, 10 * count);
        if (!answers(model, asked)) continue;
        ++group.answered;
        const bool carried = said.carrier >= 0;
        group.with_carrier += carried;
        const std::vector<Scores> scores = truth_scores(model, asked);
        // Word i stands at position i + 1, behind <s>.
        for (std::size_t m = 0; m < scores.size(); ++m)
          group.scores[m] += truth_score(scores[m], said.cause + 1, carried ? said.carrier + 1 : -1);
        group.scores.back() += random_truth_score(std::ssize(asked.prompt), carried);
      }
      group.facts = std::ssize(facts);
      table.groups.push_back(std::move(group));
    }
  return table;
}

}  // namespace regard::bench
