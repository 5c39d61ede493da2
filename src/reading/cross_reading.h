#pragma once
// What the rows of a decoder read of the source: the tap for the attention of an encoder-decoder whose rows and keys
// are two texts. The result is a Reading whose keys (s) are positions of the source.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/tap.h"
#include "reading/reading.h"
#include "reading/request.h"
#include "reading/row_places.h"

namespace regard {

// Statistics that mean something where rows and keys are two texts: lse, entropy, column_sum, weights, top.
bool is_known_across(Statistic statistic);

class CrossReadingTap final : public Tap {
 public:
  // `tokens` rows read `source_tokens` keys. The request's rows are positions of the decoder's text. The model must
  // outlive the tap. Errors: as resolve(); unsupported for another statistic, by name.
  CrossReadingTap(const Model& model, const ReadingRequest& request, std::int64_t tokens, std::int64_t source_tokens);
  ~CrossReadingTap() override;

  std::vector<Reader*> cross_readers(std::int64_t layer, std::span<const Row> rows) override;
  // After the last pass, once. Error{usage} when a row never passed.
  Reading finish();

 private:
  Reading reading_;
  std::int64_t source_tokens_;
  std::vector<std::function<Reader*(std::int64_t layer)>> aims_;  // a reader, pointed at a layer's results
  std::vector<std::unique_ptr<Reader>> readers_;
  std::optional<RowPlaces> rows_;
  Tensor<std::int64_t, 3> column_sums_;
};

}  // namespace regard
