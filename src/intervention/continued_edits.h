#pragma once
// Edits of a text that a model continues, made in the prompt and in every row that is made alike: a row has the bits
// that a whole run of the finished text, in a State of the same planned length, gives it with the same edits (law 3).
// What is taken from the run without edits, its values and its means, is the prompt's: that is all there is of it when
// the first token is chosen.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intervention/edit_tap.h"
#include "intervention/prepared_edits.h"
#include "intervention/receipt.h"

namespace regard {

class ContinuedEdits {
 public:
  virtual ~ContinuedEdits() = default;
  // For every pass of the text, the only sequence of its State.
  virtual Tap& tap() = 0;
  // Of an encoder-decoder, for encode(). Null: nothing changes in the encoder.
  virtual Tap* source_tap() { return nullptr; }
  // Of each edit, over the rows that have run: how many will is known only when the text has ended.
  virtual std::vector<std::pair<std::string, Receipt>> receipts() const = 0;
};

class ContinuedText final : public ContinuedEdits {
 public:
  // Checks first, then runs what the edits need. Errors: as PreparedEdits.
  ContinuedText(const Model& model, std::span<const std::int32_t> prompt,
                const std::map<std::string, std::vector<std::int32_t>>& runs, std::vector<Edit> edits,
                const Continuation& continuation, Progress* progress = nullptr);

  Tap& tap() override { return tap_; }
  std::vector<std::pair<std::string, Receipt>> receipts() const override;

 private:
  std::vector<Edit> edits_;
  PreparedEdits prepared_;
  EditTap tap_;
};

// What became of an edit in the rows that ran.
Receipt of_rows_that_ran(Receipt receipt);

}  // namespace regard
