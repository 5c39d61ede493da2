#include "reading/cross_reading.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reading/exact_sum.h"
#include "reading/exact_sums.h"
#include "reading/row_readers.h"
#include "reading/top_reads.h"
#include "tensor/error.h"

namespace regard {

bool is_known_across(Statistic statistic) {
  return statistic == Statistic::lse || statistic == Statistic::entropy || statistic == Statistic::column_sum ||
         statistic == Statistic::weights || statistic == Statistic::top;
}

CrossReadingTap::CrossReadingTap(const Model& model, const ReadingRequest& request, std::int64_t tokens,
                                 std::int64_t source_tokens)
    : source_tokens_(source_tokens) {
  const ReadingRequest& r = reading_.request = resolve(request, model.config(), tokens);
  for (const Statistic statistic : r.statistics)
    if (!is_known_across(statistic))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} says nothing where rows and keys are two texts", info(statistic).name),
                  "across texts there are: lse, entropy, column_sum, weights, top");
  reading_.tokens = tokens;
  rows_.emplace(r, tokens, model.config().heads);
  const std::int64_t L = std::ssize(r.layers), H = std::ssize(r.heads), R = std::ssize(r.rows);
  const auto attach = [&](auto reader, auto aim) {
    auto* pointer = reader.get();
    readers_.push_back(std::move(reader));
    aims_.push_back([pointer, aim](std::int64_t l) {
      aim(*pointer, l);
      return static_cast<Reader*>(pointer);
    });
  };
  const auto per_row = [&](Statistic statistic, auto reader) {
    Tensor<float, 3>& out = reading_.per_row[statistic] = Tensor<float, 3>({L, H, tokens});
    attach(std::move(reader), [this, &out](RowReader& row, std::int64_t l) { row.aim(rows_->all(), out.view()[l]); });
  };
  if (r.has(Statistic::lse)) per_row(Statistic::lse, std::make_unique<LogSumExpReader>());
  if (r.has(Statistic::entropy)) per_row(Statistic::entropy, std::make_unique<EntropyReader>());
  if (r.has(Statistic::column_sum)) {
    column_sums_ = Tensor<std::int64_t, 3>({L, H, source_tokens});
    attach(std::make_unique<ColumnSumReader>(),
           [this](ColumnSumReader& sums, std::int64_t l) { sums.aim(rows_->all(), column_sums_.view()[l]); });
  }
  if (r.has(Statistic::weights)) {
    reading_.weights = Tensor<float, 4>({L, H, R, source_tokens});
    attach(std::make_unique<WeightsReader>(), [this](WeightsReader& weights, std::int64_t l) {
      weights.aim(rows_->chosen(), reading_.weights.view()[l]);
    });
  }
  if (r.has(Statistic::top)) {
    reading_.top_weight = Tensor<float, 4>({L, H, R, r.top});
    reading_.top_key = Tensor<std::int32_t, 4>({L, H, R, r.top});
    attach(std::make_unique<TopReader>(), [this](TopReader& top, std::int64_t l) {
      top.aim(rows_->chosen(), reading_.top_weight.view()[l], reading_.top_key.view()[l]);
    });
  }
}

CrossReadingTap::~CrossReadingTap() = default;

std::vector<Reader*> CrossReadingTap::cross_readers(std::int64_t layer, std::span<const Row> rows) {
  rows_->pass(rows);
  const std::vector<std::int64_t>& layers = reading_.request.layers;
  const auto found = std::find(layers.begin(), layers.end(), layer);
  std::vector<Reader*> all;
  if (found == layers.end()) return all;
  for (const auto& aim : aims_) all.push_back(aim(found - layers.begin()));
  return all;
}

Reading CrossReadingTap::finish() {
  rows_->check_chosen(reading_.request);
  const std::int64_t L = std::ssize(reading_.request.layers), H = std::ssize(reading_.request.heads);
  if (column_sums_.size() > 0) {
    reading_.column_sum = Tensor<float, 3>({L, H, source_tokens_});
    for (std::int64_t i = 0; i < column_sums_.size(); ++i)
      reading_.column_sum.data()[i] = static_cast<float>(from_fixed(column_sums_.data()[i]));
  }
  if (const auto entropy = reading_.per_row.find(Statistic::entropy); entropy != reading_.per_row.end()) {
    Tensor<float, 2>& mean = reading_.mean[Statistic::entropy] = Tensor<float, 2>({L, H});
    for (std::int64_t l = 0; l < L; ++l)
      for (std::int64_t h = 0; h < H; ++h) {
        double sum = 0;
        for (std::int64_t t = 0; t < reading_.tokens; ++t) sum += entropy->second(l, h, t);
        mean(l, h) = static_cast<float>(sum / static_cast<double>(reading_.tokens));
      }
  }
  return std::move(reading_);
}

}  // namespace regard
