#include "intervention/two_texts.h"

#include <algorithm>

#include "intervention/two_texts_batch.h"
#include "model/layers.h"
#include "model/source.h"
#include "reading/selection.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr int kEncoder = static_cast<int>(Attention::encoder), kDecoder = static_cast<int>(Attention::decoder),
              kCross = static_cast<int>(Attention::cross);

ModelConfig sees_every_key(ModelConfig config) {
  config.causal = false;
  std::fill(config.window.begin(), config.window.end(), 0);
  return config;
}

std::vector<Edit> edits_of(std::span<const PlacedEdit> edits, Attention attention) {
  std::vector<Edit> own;
  for (const PlacedEdit& placed : edits)
    if (placed.attention == attention) own.push_back(placed.edit);
  return own;
}

// Rows are positions of the decoder's text, keys of the source.
Cells resolve_across(const Edit& edit, const ModelConfig& config, const Runs& runs, std::int64_t source_tokens,
                     std::int64_t target_rows) {
  Edit rows = edit;
  rows.at(Selector::key).reset();
  Cells cells = resolve(rows, config, runs, target_rows);
  if (edit.site != EditSite::edge) return cells;
  Edit keys = edit;
  keys.at(Selector::row).reset();
  cells.keys = resolve(keys, config, {{kClean, {source_tokens, nullptr}}}).keys;
  return cells;
}

Tensor<float, 2> encoded_by(const Model& encoder, const RunRecord& run) {
  Tensor<float, 2> encoded({run.tokens(), encoder.config().width});
  apply(encoder.head().final_norm, encoder.config(), run.final_resid(), encoded.view());
  return encoded;
}

}  // namespace

TwoTextExperiment::TwoTextExperiment(const Model& model, TwoTextRequest request, bool partial, Progress* progress)
    : model_(model), request_(std::move(request)), across_(sees_every_key(model.config())) {
  const Model& encoder = *model.encoder();
  if (request_.source.empty()) throw Error(ErrorCode::bad_input, "the source has no tokens");
  if (request_.target.empty()) throw Error(ErrorCode::bad_input, "the decoder's text has no tokens");
  if (of_all_rows(request_.metric.kind))
    throw Error(ErrorCode::unsupported, "what the decoder says has no embedding to compare",
                "choose a metric of its logits, for instance --metric kl");
  check_listed(request_.continuation);
  const std::int64_t T = std::ssize(request_.target), planned = request_.continuation.planned_length;
  row_ = select(std::vector{request_.row}, T, "row")[0];
  std::map<std::string, std::vector<std::int32_t>> sources = request_.runs;
  if (!sources.emplace(kClean, request_.source).second)
    throw Error(ErrorCode::usage, "a run cannot be called 'clean'", "that is the run of the prompt without edits");
  for (const auto& [name, source] : sources) {
    runs_[kEncoder][name].tokens = std::ssize(source);
    runs_[kDecoder][name].tokens = runs_[kCross][name].tokens = T;
  }
  if (partial) {
    (void)resolve(request_.edits);  // what is wrong with an edit is said before anything runs
  } else {
    check(request_.edits);
  }

  for (const auto& [name, source] : sources) {
    std::set<Site> sites[kAttentions];
    for (int a = 0; a < kAttentions; ++a) {
      const auto needed = sites_needed(edits_of(request_.edits, static_cast<Attention>(a)));
      if (const auto found = needed.find(name); found != needed.end()) sites[a] = found->second;
    }
    const RunRecord& encoding =
        records_[kEncoder].try_emplace(name, encoder, source, sites[kEncoder], progress).first->second;
    Tensor<float, 2> encoded = encoded_by(encoder, encoding);
    const EncodedSource own{.encoded = encoded.view()}, across{.encoded = encoded.view(), .across = true};
    const RunRecord& decoding = records_[kDecoder]
                                    .try_emplace(name, model, request_.target, sites[kDecoder], own, progress, planned)
                                    .first->second;
    runs_[kEncoder][name].record = &encoding;
    runs_[kDecoder][name].record = &decoding;
    if (!sites[kCross].empty())
      runs_[kCross][name].record =
          &records_[kCross]
               .try_emplace(name, model, request_.target, sites[kCross], across, progress, planned)
               .first->second;
    if (name == "contrast") {
      contrast_ = Tensor<float, 2>({1, model.config().width});
      std::copy_n(&decoding.final_resid()(row_, 0), model.config().width, contrast_.data());
    }
    if (name == kClean) encoded_ = std::move(encoded);
  }
  measure_.emplace(model, request_.metric, records_[kDecoder].at(kClean).final_resid(), row_);
}

std::optional<double> TwoTextExperiment::contrast() const {
  if (contrast_.size() == 0) return {};
  return measure_->of(contrast_.view())[0];
}

const ModelConfig& TwoTextExperiment::config(Attention attention) const {
  return attention == Attention::encoder   ? model_.encoder()->config()
         : attention == Attention::decoder ? model_.config()
                                           : across_;
}

TwoTextCells TwoTextExperiment::resolve(std::span<const PlacedEdit> edits) const {
  TwoTextCells cells;
  for (const PlacedEdit& placed : edits) {
    const int a = static_cast<int>(placed.attention);
    const std::int64_t rows = a == kEncoder ? 0 : request_.continuation.rows;  // the source is all there
    cells.of[a].push_back(a == kCross
                              ? resolve_across(placed.edit, across_, runs_[a], std::ssize(request_.source), rows)
                              : regard::resolve(placed.edit, config(placed.attention), runs_[a], rows));
  }
  return cells;
}

void TwoTextExperiment::check(std::span<const PlacedEdit> edits) const {
  const TwoTextCells cells = resolve(edits);
  for (const Attention a : {Attention::encoder, Attention::decoder, Attention::cross})
    regard::check(edits_of(edits, a), cells.of[static_cast<int>(a)], config(a));
}

bool TwoTextExperiment::matches(std::span<const PlacedEdit> edits) const {
  const TwoTextCells cells = resolve(edits);
  for (const Attention a : {Attention::encoder, Attention::decoder, Attention::cross})
    for (const Cells& own : cells.of[static_cast<int>(a)])
      if (own.matched(config(a)) == 0) return false;
  return true;
}

void TwoTextExperiment::run(std::int64_t count, const std::function<std::vector<PlacedEdit>(std::int64_t)>& edits,
                            const std::function<void(const Found&)>& found, Progress* progress, bool whole) const {
  const auto target =
      std::span(request_.target).first(whole ? request_.target.size() : static_cast<std::size_t>(row_ + 1));
  const std::int64_t longest = std::max(std::ssize(request_.source), std::ssize(target));
  const std::int64_t together =
      std::clamp<std::int64_t>(request_.batch_rows / longest, 1, std::max<std::int64_t>(1, count));
  TwoTextBatch batch(model_, across_, request_.source, target, row_, encoded(), together);
  for (std::int64_t first = 0; first < count; first += together) {
    const std::int64_t n = std::min(together, count - first);
    std::vector<std::vector<PlacedEdit>> chosen;
    std::vector<TwoTextCells> cells;
    for (std::int64_t i = first; i < first + n; ++i) {
      chosen.push_back(edits(i));
      cells.push_back(resolve(chosen.back()));
    }
    const TwoTextBatch::Outcome outcome = batch.run(cells);
    const std::vector<double> values = measure_->of(outcome.resid.view());
    for (std::int64_t i = 0; i < n; ++i) {
      Found one{.result = {.index = first + i, .value = values[i], .receipts = {}},
                .resid = outcome.resid.view().slice(i, i + 1)};
      std::size_t next[kAttentions] = {};
      for (const PlacedEdit& placed : chosen[i]) {
        const int a = static_cast<int>(placed.attention);
        one.result.receipts.push_back(outcome.receipts[a][i][next[a]++]);
      }
      found(one);
    }
    if (progress != nullptr) progress->at("what-ifs", first + n, count);
  }
}

PatchResult patch(const TwoTextExperiment& experiment, Progress* progress) {
  const Measure& measure = experiment.measure();
  PatchResult result = before_edits(measure, experiment.contrast());
  experiment.run(
      1, [&](std::int64_t) { return experiment.request().edits; },
      [&](const TwoTextExperiment::Found& found) {
        result.edited = found.result.value;
        result.receipts = found.result.receipts;
        logits(experiment.model(), found.resid, View<float, 2>(result.after.data(), {1, std::ssize(result.after)}));
      },
      progress, true);
  result.divergence = divergence(result.before, result.after);
  if (result.contrast && *result.contrast != result.base)
    result.recovery = (result.edited - *result.contrast) / (result.base - *result.contrast);
  return result;
}

}  // namespace regard
