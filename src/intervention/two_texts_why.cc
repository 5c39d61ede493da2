#include "intervention/two_texts_why.h"

#include <functional>

#include "intervention/why.h"
#include "model/forward.h"
#include "model/source.h"
#include "model/taps.h"
#include "reading/cross_reading.h"
#include "reading/reading_tap.h"

namespace regard {
namespace {

// One kind of what-if: an edit for each place of `out`.
struct EditKind {
  std::string named;  // in the receipts
  double* out = nullptr;
  std::int64_t count = 0;
  std::function<std::string(std::int64_t)> edit;  // empty: there is no such what-if
};

// [S] of the one row that was read, mean over layers and heads.
std::vector<double> mean_weights(const Reading& reading) {
  const Tensor<float, 4>& weights = reading.weights;
  const std::int64_t L = weights.shape()[0], H = weights.shape()[1], S = weights.shape()[3];
  std::vector<double> mean(static_cast<std::size_t>(S));
  for (std::int64_t l = 0; l < L; ++l)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t s = 0; s < S; ++s) mean[s] += weights(l, h, 0, s) / static_cast<double>(L * H);
  return mean;
}

void read_row(const TwoTextExperiment& experiment, TwoTextWhy& result) {
  const Model& model = experiment.model();
  const std::vector<std::int32_t>& target = experiment.request().target;
  ReadingRequest wanted;
  wanted.statistics = {Statistic::weights};
  wanted.rows = {experiment.row()};
  ReadingTap own(model, resolve(wanted, model.config(), std::ssize(target)), target);
  CrossReadingTap cross(model, wanted, std::ssize(target), std::ssize(experiment.request().source));
  Taps taps({&own, &cross});
  State state(model.config(), 1, std::ssize(target));
  set_source(model, state, experiment.encoded());
  feed(model, state, target, 0, {.tap = &taps, .on_rows = {}});
  result.target.attention = mean_weights(own.finish());
  result.source.attention = mean_weights(cross.finish());
}

// All positions of the source but s.
std::string others(std::int64_t s, std::int64_t tokens) {
  std::string rows = s > 0 ? fmt::format("0:{}", s) : "";
  if (s + 1 < tokens) rows += fmt::format("{}{}:{}", rows.empty() ? "" : ",", s + 1, tokens);
  return rows;
}

}  // namespace

TwoTextWhy why(const Model& model, const TwoTextWhyRequest& request, Progress* progress) {
  const TwoTextExperiment experiment(model,
                                     {.source = request.source,
                                      .target = request.target,
                                      .metric = request.metric,
                                      .row = request.row,
                                      .batch_rows = request.batch_rows},
                                     true, progress);
  const std::int64_t S = std::ssize(request.source), T = std::ssize(request.target), row = experiment.row();
  TwoTextWhy result;
  result.metric = experiment.measure().metric();
  result.row = row;
  result.base = experiment.measure().base();
  result.logits = experiment.measure().clean_logits();
  read_row(experiment, result);

  std::vector<EditKind> kinds;
  const auto by_position = [&](std::string named, std::vector<double>& out, std::int64_t count, auto edit) {
    out.assign(static_cast<std::size_t>(count), kNoWhatIf);
    kinds.push_back({std::move(named), out.data(), count, edit});
  };
  by_position("block edge attention=cross row=R key=S", result.source.hide_from_last, S,
              [row](std::int64_t s) { return fmt::format("block edge attention=cross row={} key={}", row, s); });
  by_position("block edge attention=cross key=S", result.source.hide_from_all, S,
              [](std::int64_t s) { return fmt::format("block edge attention=cross key={}", s); });
  by_position("block edge attention=decoder row=R key=S", result.target.hide_from_last, T, [row](std::int64_t s) {
    return s < row ? fmt::format("block edge attention=decoder row={} key={}", row, s) : "";
  });
  by_position("block edge attention=decoder row=S+1: key=S", result.target.hide_from_all, T, [row](std::int64_t s) {
    return s < row ? fmt::format("block edge attention=decoder row={}:{} key={}", s + 1, row + 1, s) : "";
  });
  // No row that the metric sees reads these by way of another.
  for (std::int64_t s = row; s < T; ++s) result.target.hide_from_all[s] = 0;
  by_position("block edge attention=encoder row=0:S,S+1: key=S", result.source.hide_in_encoder, S, [S](std::int64_t s) {
    return S > 1 ? fmt::format("block edge attention=encoder row={} key={}", others(s, S), s) : "";
  });
  if (S == 1) result.source.hide_in_encoder[0] = 0;  // nobody else is there to read it
  // What changes the encoder comes together: only there is the source encoded again.
  for (const Attention attention : {Attention::encoder, Attention::decoder, Attention::cross}) {
    if (!request.heads) break;
    const ModelConfig& config = attention == Attention::encoder ? model.encoder()->config() : model.config();
    const std::int64_t H = config.heads;
    Tensor<double, 2>& out = result.zero_z[static_cast<int>(attention)] = Tensor<double, 2>({config.layers, H});
    kinds.push_back({fmt::format("zero z attention={} layer=L head=H", name(attention)), out.data(), out.size(),
                     [attention, H](std::int64_t i) {
                       return fmt::format("zero z attention={} layer={} head={}", name(attention), i / H, i % H);
                     }});
  }

  struct WhatIf {
    std::size_t kind;
    std::int64_t place;
  };
  std::vector<WhatIf> what_ifs;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    result.receipts.push_back({kinds[k].named, {}});
    for (std::int64_t place = 0; place < kinds[k].count; ++place)
      if (!kinds[k].edit(place).empty()) what_ifs.push_back({k, place});
  }
  result.what_ifs = std::ssize(what_ifs);
  experiment.run(
      result.what_ifs,
      [&](std::int64_t i) { return std::vector{parse_placed_edit(kinds[what_ifs[i].kind].edit(what_ifs[i].place))}; },
      [&](const TwoTextExperiment::Found& found) {
        const WhatIf& what_if = what_ifs[found.result.index];
        kinds[what_if.kind].out[what_if.place] = found.result.value - result.base;
        result.receipts[what_if.kind].second += found.result.receipts[0];
      },
      progress);
  return result;
}

}  // namespace regard
