#pragma once
// Cuts a draft into words by the steps that a file lists.

#include <memory>
#include <vector>

#include "text/draft.h"
#include "text/tokenizer_spec.h"

namespace regard {

class Cutter {
 public:
  // Error{unsupported}: a pattern that is not understood. Expressions of well-known models run as scanners
  // (pretokenizer.h), others by a regular expression engine.
  explicit Cutter(const std::vector<CutStep>& steps);
  ~Cutter();
  // Cuts each word that is no token yet.
  void apply(Draft& draft) const;

  class Step;  // its own business

 private:
  std::vector<std::unique_ptr<const Step>> steps_;
};

}  // namespace regard
