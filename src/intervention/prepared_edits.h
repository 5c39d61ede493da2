#pragma once
// Edits of one text, ready to be made: checked, and with the runs that they take values from.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "intervention/cells.h"
#include "parallel/progress.h"

namespace regard {

// Of a text that is the prompt of a longer one.
struct Continuation {
  std::int64_t rows = 0;            // that may run at most, the prompt's included
  std::int64_t planned_length = 0;  // of the State that the text is made with: what runs keep must fit it
};

// Error{usage} for more rows than cells are listed for.
void check_listed(const Continuation& continuation);

class PreparedEdits {
 public:
  // runs: other texts by name. Checks first, then runs what the edits need. Errors: as resolve(), check() and
  // check_listed().
  PreparedEdits(const Model& model, std::span<const std::int32_t> ids,
                const std::map<std::string, std::vector<std::int32_t>>& runs, std::span<const Edit> edits,
                Progress* progress = nullptr, const Continuation& continuation = {});
  PreparedEdits(const PreparedEdits&) = delete;
  PreparedEdits& operator=(const PreparedEdits&) = delete;

  const std::vector<Cells>& cells() const { return cells_; }  // of each edit

 private:
  std::map<std::string, RunRecord> records_;
  std::vector<Cells> cells_;
};

}  // namespace regard
