#include "text/pretokenizer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tensor/error.h"
#include "text/display.h"
#include "text/scan-inl.h"
#include "text/scan_cased.h"

namespace regard {
namespace {

struct Name {
  std::string_view name;
  PreTokenizer rules;
  bool whole_words = false, bos = false;
};

// Names as converters write them (llama.cpp, llama-vocab.cpp, says what each means). Only those whose whole pipeline is
// the one below: several files share an expression and differ in normalisation, and such a difference would be silent.
constexpr Name kNames[] = {
    {"gpt-2", PreTokenizer::gpt2},
    {"gpt2", PreTokenizer::gpt2},
    {"phi-2", PreTokenizer::gpt2},
    {"roberta-bpe", PreTokenizer::gpt2},
    {"olmo", PreTokenizer::gpt2},
    {"smollm", PreTokenizer::smollm},
    {"starcoder", PreTokenizer::smollm},
    {"refact", PreTokenizer::smollm},
    {"qwen2", PreTokenizer::qwen2},
    {"deepseek-r1-qwen", PreTokenizer::qwen2},
    {"llama-bpe", PreTokenizer::llama3, true, true},
    {"llama3", PreTokenizer::llama3, true, true},
    {"llama-v3", PreTokenizer::llama3, true, true},
    {"falcon3", PreTokenizer::llama3, true, true},
    {"pixtral", PreTokenizer::llama3, true, true},
    {"dbrx", PreTokenizer::llama3},  // Phi-4
    {"smaug-bpe", PreTokenizer::llama3},
    {"gpt-4o", PreTokenizer::o200k, true},
    {"tekken", PreTokenizer::tekken, true, true},
};

const Name* find_name(std::string_view name) {
  const Name* const found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& known) { return known.name == name; });
  return found == std::end(kNames) ? nullptr : found;
}

// The expressions that files write for the rules.
struct Written {
  std::string_view expression;
  PreTokenizer rules;
};
constexpr Written kWritten[] = {
    {kGpt2Expression, PreTokenizer::gpt2},     {kQwen2Expression, PreTokenizer::qwen2},
    {kLlama3Expression, PreTokenizer::llama3}, {kO200kExpression, PreTokenizer::o200k},
    {kTekkenExpression, PreTokenizer::tekken},
};

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word_end(const Part& part, std::size_t i) {
  if (const std::size_t end = part.contraction_end(i, false); end != i) return end;
  const std::size_t word = part.byte(i) == ' ' ? i + 1 : i;
  const Part::Seen seen = part.at(word);
  if (seen.length != 0 && seen.kind != CharClass::space && seen.kind != CharClass::newline)
    return part.run_end(word + seen.length, seen.kind);
  return part.space_end(i);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t qwen2_word_end(const Part& part, std::size_t i, int digits) {
  if (const std::size_t end = part.contraction_end(i, true); end != i) return end;
  const Part::Seen first = part.at(i);
  if (first.kind == CharClass::letter) return part.run_end(i, CharClass::letter);
  if (first.kind == CharClass::number) {
    for (int n = 0; n < digits && part.is(i, CharClass::number); ++n) i += part.at(i).length;
    return i;
  }
  if (first.kind != CharClass::newline && part.is(i + first.length, CharClass::letter))
    return part.run_end(i + first.length, CharClass::letter);
  const std::size_t word = part.byte(i) == ' ' ? i + 1 : i;
  if (part.is(word, CharClass::other)) return part.run_end(part.run_end(word, CharClass::other), CharClass::newline);
  if (const std::size_t end = part.lines_end(i); end != i) return end;
  return part.space_end(i);
}

}  // namespace

PreTokenizer pretokenizer_named(std::string_view name) {
  if (const Name* known = find_name(name)) return known->rules;
  throw Error(ErrorCode::unsupported,
              name.empty() ? std::string("the file does not say which pre-tokenizer its byte-level BPE uses")
                           : fmt::format("pre-tokenizer '{}' is not known", display(name)),
              fmt::format("known are {}; a file with another name was made for other cuts, or must be converted again",
                          fmt::join(pretokenizer_names(), ", ")));
}

std::vector<std::string> pretokenizer_names() {
  std::vector<std::string> names;
  for (const Name& known : kNames) names.emplace_back(known.name);
  return names;
}

std::optional<PreTokenizer> pretokenizer_of_expression(std::string_view expression) {
  for (const Written& known : kWritten)
    if (known.expression == expression) return known.rules;
  return std::nullopt;
}

std::string_view expression_of(PreTokenizer rules) {
  for (const Written& known : kWritten)
    if (known.rules == rules) return known.expression;
  return kGpt2Expression;  // smollm's, between the digits
}

bool normalizes(std::string_view name) { return name == "qwen2" || name == "olmo"; }

bool takes_whole_words(std::string_view name) {
  const Name* const known = find_name(name);
  return known != nullptr && known->whole_words;
}

bool begins_with_bos(std::string_view name) {
  const Name* const known = find_name(name);
  return known != nullptr && known->bos;
}

std::string_view WordScanner::next() {
  if (at_ == text_.size()) return {};
  const std::size_t begin = at_;
  at_ = word_end(begin);
  return text_.substr(begin, at_ - begin);
}

std::size_t WordScanner::word_end(std::size_t begin) {
  switch (rules_) {
    case PreTokenizer::gpt2:
      return gpt2_word_end(Part(text_), begin);
    case PreTokenizer::smollm: {
      // Each \p{N} is a word; what lies between two of them is cut like GPT-2's, by itself.
      const Part whole(text_);
      if (const Part::Seen first = whole.at(begin); first.kind == CharClass::number) return begin + first.length;
      if (begin >= part_end_) {
        part_end_ = begin;
        for (Part::Seen seen = whole.at(begin); seen.length != 0 && seen.kind != CharClass::number;
             seen = whole.at(part_end_))
          part_end_ += seen.length;
      }
      return gpt2_word_end(Part(text_.substr(0, part_end_)), begin);
    }
    case PreTokenizer::qwen2:
      return qwen2_word_end(Part(text_), begin, 1);
    case PreTokenizer::llama3:
      return qwen2_word_end(Part(text_), begin, 3);
    case PreTokenizer::o200k:
      return o200k_word_end(Part(text_), begin);
    case PreTokenizer::tekken:
      return tekken_word_end(Part(text_), begin);
  }
  return text_.size();
}

}  // namespace regard
