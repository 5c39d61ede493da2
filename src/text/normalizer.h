#pragma once
// The normaliser of a tokenizer: the steps that a file lists, made ready to run.

#include <memory>
#include <string_view>
#include <vector>

#include "text/draft.h"
#include "text/tokenizer_spec.h"

namespace regard {

class Normalizer {
 public:
  // Errors as Tokenizer's constructor: a pattern that is not understood, a damaged charsmap.
  explicit Normalizer(const std::vector<NormalizerStep>& steps);
  ~Normalizer();
  // Rewrites the draft's text, which has no words yet.
  void apply(Draft& draft) const;

 private:
  struct Step;
  std::vector<std::unique_ptr<const Step>> steps_;
};

}  // namespace regard
