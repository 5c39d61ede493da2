#include "text/pretokenizer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tensor/error.h"
#include "text/char_class.h"
#include "text/utf8.h"

namespace regard {
namespace {

struct Name {
  std::string_view name;
  PreTokenizer rules;
};

// Names as converters write them. Only those whose whole pipeline is the one below: several files share an expression
// and differ in normalisation, and such a difference would be silent.
constexpr Name kNames[] = {
    {"gpt-2", PreTokenizer::gpt2},      {"gpt2", PreTokenizer::gpt2},        {"phi-2", PreTokenizer::gpt2},
    {"smollm", PreTokenizer::smollm},   {"starcoder", PreTokenizer::smollm}, {"refact", PreTokenizer::smollm},
    {"qwen2", PreTokenizer::qwen2},     {"llama-bpe", PreTokenizer::llama3}, {"llama3", PreTokenizer::llama3},
    {"llama-v3", PreTokenizer::llama3},
};

// Looks at the characters of a part of a text, which nothing outside of it influences.
class Part {
 public:
  explicit Part(std::string_view text) : text_(text), classes_(first_plane_classes()) {}

  struct Seen {
    CharClass kind;
    std::uint32_t length;  // 0 at the end
  };

  Seen at(std::size_t i) const {
    if (i >= text_.size()) return {CharClass::other, 0};
    const Character c = character_at(text_, i);
    return {c.code < classes_.size() ? classes_[c.code] : class_beyond_first_plane(c.code), c.length};
  }

  bool is(std::size_t i, CharClass kind) const {
    const Seen seen = at(i);
    return seen.length != 0 && seen.kind == kind;
  }

  std::size_t run_end(std::size_t i, CharClass kind) const {
    for (;;) {
      const Seen seen = at(i);
      if (seen.length == 0 || seen.kind != kind) return i;
      i += seen.length;
    }
  }

  // 's 't 're 've 'm 'll 'd at `i`: the end of it, or `i`. Without regard to case, s is also U+017F, the long s.
  std::size_t contraction_end(std::size_t i, bool any_case) const {
    if (text_[i] != '\'') return i;
    const auto letter = [&](std::size_t k) -> char {
      if (k >= text_.size()) return 0;
      const char c = text_[k];
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const char first = letter(i + 1), second = letter(i + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return i + 3;
    if (first == 'l' && second == 'l') return i + 3;
    if (any_case && text_.substr(i + 1, 2) == "\u017F") return i + 3;
    return i;
  }

  // \s+(?!\S)|\s+ at `i`, which is white space: all of it up to the end of the text, else all but its last character,
  // which goes with what follows, else that one character.
  std::size_t space_end(std::size_t i) const {
    std::size_t end = i, last = i;
    for (Seen seen = at(end); seen.length != 0 && is_space(seen.kind); seen = at(end)) {
      last = end;
      end += seen.length;
    }
    return end == text_.size() || last == i ? end : last;
  }

  // \s*[\r\n]+ at `i`: behind the last line end of the white space there, or `i`.
  std::size_t lines_end(std::size_t i) const {
    std::size_t end = i;
    for (Seen seen = at(i); seen.length != 0 && is_space(seen.kind); seen = at(i)) {
      i += seen.length;
      if (seen.kind == CharClass::newline) end = i;
    }
    return end;
  }

  char byte(std::size_t i) const { return text_[i]; }

 private:
  static bool is_space(CharClass kind) { return kind == CharClass::space || kind == CharClass::newline; }

  std::string_view text_;
  const std::array<CharClass, 0x10000>& classes_;
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
  for (const Name& known : kNames)
    if (known.name == name) return known.rules;
  throw Error(ErrorCode::unsupported,
              name.empty() ? std::string("the file does not say which pre-tokenizer its byte-level BPE uses")
                           : fmt::format("pre-tokenizer '{}' is not known", name),
              fmt::format("known are {}; a file with another name was made for other cuts, or must be converted again",
                          fmt::join(pretokenizer_names(), ", ")));
}

std::vector<std::string> pretokenizer_names() {
  std::vector<std::string> names;
  for (const Name& known : kNames) names.emplace_back(known.name);
  return names;
}

bool normalizes(PreTokenizer rules) { return rules == PreTokenizer::qwen2; }

bool takes_whole_words(PreTokenizer rules) { return rules == PreTokenizer::llama3; }

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
  }
  return text_.size();
}

}  // namespace regard
