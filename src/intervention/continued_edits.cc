#include "intervention/continued_edits.h"

namespace regard {

ContinuedText::ContinuedText(const Model& model, std::span<const std::int32_t> prompt,
                             const std::map<std::string, std::vector<std::int32_t>>& runs, std::vector<Edit> edits,
                             const Continuation& continuation, Progress* progress)
    : edits_(std::move(edits)),
      prepared_(model, prompt, runs, edits_, progress, continuation),
      tap_(model.config(), {std::span<const Cells>(prepared_.cells())}) {}

std::vector<std::pair<std::string, Receipt>> ContinuedText::receipts() const {
  std::vector<std::pair<std::string, Receipt>> all;
  for (std::size_t e = 0; e < edits_.size(); ++e)
    all.emplace_back(to_string(edits_[e]), of_rows_that_ran(tap_.receipts()[0][e]));
  return all;
}

Receipt of_rows_that_ran(Receipt receipt) {
  receipt.matched = receipt.passed;
  return receipt;
}

}  // namespace regard
