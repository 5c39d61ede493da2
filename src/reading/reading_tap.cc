#include "reading/reading_tap.h"

#include <algorithm>
#include <cmath>

#include "reading/exact_sums.h"
#include "reading/row_readers.h"
#include "reading/top_reads.h"
#include "tensor/error.h"

namespace regard {
namespace {

template <int Rank>
Tensor<float, Rank> not_read(std::array<std::int64_t, Rank> shape) {
  Tensor<float, Rank> tensor(shape);
  std::fill_n(tensor.data(), tensor.size(), kNotRead);
  return tensor;
}

}  // namespace

ReadingTap::ReadingTap(const Model& model, const ReadingRequest& request, std::span<const std::int32_t> tokens)
    : model_(model), tokens_(tokens.begin(), tokens.end()), places_(tokens) {
  reading_.request = resolve(request, model.config(), std::ssize(tokens_));
  reading_.tokens = std::ssize(tokens_);
  rows_.emplace(reading_.request, reading_.tokens, model.config().heads);
  attach();
}

ReadingTap::~ReadingTap() = default;

template <typename R, typename Aim>
void ReadingTap::attach(std::unique_ptr<R> reader, Aim aim) {
  R* pointer = reader.get();
  attached_.push_back({std::move(reader), [pointer, aim](std::int64_t layer) { aim(*pointer, layer); }});
}

void ReadingTap::attach() {
  const ReadingRequest& request = reading_.request;
  const std::int64_t L = std::ssize(request.layers), H = std::ssize(request.heads), R = std::ssize(request.rows);
  const std::int64_t T = reading_.tokens;

  const auto per_row = [&](Statistic statistic, auto reader) {
    Tensor<float, 3>& out = reading_.per_row[statistic] = not_read<3>({L, H, T});
    attach(std::move(reader), [this, &out](RowReader& r, std::int64_t l) { r.aim(rows_->all(), out.view()[l]); });
  };
  for (Statistic statistic : statistics_read(request)) {
    switch (statistic) {
      case Statistic::lse:
        per_row(statistic, std::make_unique<LogSumExpReader>());
        break;
      case Statistic::entropy:
        per_row(statistic, std::make_unique<EntropyReader>());
        break;
      case Statistic::sink:
        per_row(statistic, std::make_unique<KeyReader>(0));
        break;
      case Statistic::sink_share:
        per_row(statistic, std::make_unique<SinkShareReader>());
        break;
      case Statistic::distance:
        per_row(statistic, std::make_unique<DistanceReader>());
        break;
      case Statistic::previous:
        per_row(statistic, std::make_unique<OffsetReader>(1));
        break;
      case Statistic::duplicate:
        per_row(statistic, std::make_unique<TokenReader>(places_, 0));
        break;
      case Statistic::induction:
        per_row(statistic, std::make_unique<TokenReader>(places_, 1));
        break;
      case Statistic::column_sum:
        column_sums_ = Tensor<std::int64_t, 3>({L, H, T});
        attach(std::make_unique<ColumnSumReader>(),
               [this](ColumnSumReader& r, std::int64_t l) { r.aim(rows_->all(), column_sums_.view()[l]); });
        break;
      case Statistic::distances:
        diagonal_sums_ = Tensor<std::int64_t, 3>({L, H, distances_read(model_.config(), T)});
        attach(std::make_unique<DiagonalReader>(!model_.config().causal),
               [this](DiagonalReader& r, std::int64_t l) { r.aim(rows_->all(), diagonal_sums_.view()[l]); });
        break;
      case Statistic::copying:
        copies_ = Tensor<std::int64_t, 2>({L, H});
        attach(std::make_unique<CopyReader>(tokens_),
               [this](CopyReader& r, std::int64_t l) { r.aim(rows_->all(), copies_.view()[l]); });
        break;
      case Statistic::value_norm:
        reading_.value_norm = not_read<3>({L, H, T});
        norms_ = std::make_unique<ValueNorms>(model_);
        break;
      case Statistic::mixing:
        mixing_ = std::make_unique<MixingTap>(model_, T, request.sequence, request.layers);
        break;
      case Statistic::weights:
        reading_.weights = not_read<4>({L, H, R, T});
        attach(std::make_unique<WeightsReader>(),
               [this](WeightsReader& r, std::int64_t l) { r.aim(rows_->chosen(), reading_.weights.view()[l]); });
        break;
      case Statistic::top:
        reading_.top_weight = Tensor<float, 4>({L, H, R, request.top});
        reading_.top_key = Tensor<std::int32_t, 4>({L, H, R, request.top});
        attach(std::make_unique<TopReader>(), [this](TopReader& r, std::int64_t l) {
          r.aim(rows_->chosen(), reading_.top_weight.view()[l], reading_.top_key.view()[l]);
        });
        break;
      case Statistic::groups:
        reading_.group_mass =
            Tensor<float, 4>({L, H, R, 1 + *std::max_element(request.groups.begin(), request.groups.end())});
        attach(std::make_unique<GroupReader>(request.groups),
               [this](GroupReader& r, std::int64_t l) { r.aim(rows_->chosen(), reading_.group_mass.view()[l]); });
        break;
      case Statistic::direct:
        direct_ = std::make_unique<DirectEffectsTap>(model_, request.rows, request.sequence);
        break;
      case Statistic::flow:
        flow_ = std::make_unique<FlowTap>(model_, T, request.layers, request.rows, request.sequence);
        break;
      case Statistic::norm_weighted:  // these are made at the end
      case Statistic::norm_weighted_column_sum:
      case Statistic::rollout:
      case Statistic::lens:
        break;
    }
  }
  keeps_resid_ = request.resid || request.has(Statistic::lens);
  if (keeps_resid_) reading_.resid = Tensor<float, 3>({model_.config().layers + 1, R, model_.config().width});
}

std::int64_t ReadingTap::index_of_layer(std::int64_t layer) const {
  const std::vector<std::int64_t>& layers = reading_.request.layers;
  const auto found = std::find(layers.begin(), layers.end(), layer);
  return found == layers.end() ? -1 : found - layers.begin();
}

bool ReadingTap::wants(Site site, std::int64_t layer) const {
  if ((mixing_ && mixing_->wants(site, layer)) || (direct_ && direct_->wants(site, layer))) return true;
  if (flow_ && flow_->wants(site, layer)) return true;
  switch (site) {
    case Site::resid_pre:
      return keeps_resid_;
    case Site::resid_post:
      return keeps_resid_ && layer + 1 == model_.config().layers;
    case Site::v:
      return norms_ != nullptr && index_of_layer(layer) >= 0;
    default:
      return false;
  }
}

void ReadingTap::at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) {
  for (Tap* part : {static_cast<Tap*>(mixing_.get()), static_cast<Tap*>(direct_.get()), static_cast<Tap*>(flow_.get())})
    if (part != nullptr && part->wants(site, layer)) part->at(site, layer, rows, value);
  rows_->pass(rows);
  if (site == Site::v && norms_ && index_of_layer(layer) >= 0)
    norms_->add(layer, reading_.request.heads, value, rows_->all().row,
                reading_.value_norm.view()[index_of_layer(layer)]);
  if (keeps_resid_ && (site == Site::resid_pre || site == Site::resid_post)) keep_resid(site, layer, value);
}

void ReadingTap::keep_resid(Site site, std::int64_t layer, View<const float, 3> value) {
  const std::int64_t at = layer + (site == Site::resid_post ? 1 : 0);
  const std::vector<std::int32_t>& chosen = rows_->chosen().row;
  for (std::size_t r = 0; r < chosen.size(); ++r) {
    if (chosen[r] < 0) continue;
    for (std::int64_t c = 0; c < value.shape[2]; ++c) reading_.resid(at, chosen[r], c) = value(r, 0, c);
  }
}

std::vector<Reader*> ReadingTap::readers(std::int64_t layer, std::span<const Row> rows) {
  rows_->pass(rows);
  const std::int64_t l = index_of_layer(layer);
  if (l < 0 || !rows_->any()) return {};
  std::vector<Reader*> all;
  for (const Attached& attached : attached_) {
    attached.aim(l);
    all.push_back(attached.reader.get());
  }
  if (flow_)
    for (Reader* reader : flow_->readers(layer, rows)) all.push_back(reader);
  if (mixing_)
    for (Reader* reader : mixing_->readers(layer, rows)) all.push_back(reader);
  return all;
}

}  // namespace regard
