#include "text/stages.h"

#include "tensor/error.h"
#include "text/pretokenizer.h"

namespace regard {
namespace {

CutStep split(std::string_view expression) {
  return {.kind = CutStep::Kind::split, .pattern = std::string(expression), .expression = true};
}

Stages byte_level(std::string_view pre) {
  const PreTokenizer rules = pretokenizer_named(pre);
  Stages stages;
  if (normalizes(pre)) stages.normalizers.push_back({.kind = NormalizerStep::Kind::nfc});
  if (rules == PreTokenizer::smollm) stages.cuts.push_back({.kind = CutStep::Kind::digits, .each = true});
  stages.cuts.push_back(split(expression_of(rules)));
  stages.whole_words = takes_whole_words(pre);
  stages.spelling.byte_level = true;
  return stages;
}

// The text's own U+2581 cannot be told from a space: that is how these vocabularies are.
Stages sentencepiece(bool add_space_prefix) {
  Stages stages;
  if (add_space_prefix) stages.normalizers.push_back({.kind = NormalizerStep::Kind::prepend, .content = " "});
  stages.normalizers.push_back(
      {.kind = NormalizerStep::Kind::replace, .pattern = std::string(kSpaceMark), .content = " "});
  stages.spelling.space = kSpaceMark;
  return stages;
}

}  // namespace

Stages stages_of(const TokenizerSpec& spec) {
  switch (spec.kind) {
    case TokenizerSpec::Kind::byte_level_bpe:
      return byte_level(spec.pre);
    case TokenizerSpec::Kind::sentencepiece_bpe:
      return sentencepiece(spec.add_space_prefix);
    default:
      throw Error(ErrorCode::unsupported, "a tokenizer of this kind must say how a text is normalised and cut");
  }
}

}  // namespace regard
