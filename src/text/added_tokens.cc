#include "text/added_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "tensor/error.h"
#include "text/char_sets.h"
#include "text/utf8.h"

namespace regard {
namespace {

// A text is scanned for special tokens at every byte; one of a megabyte would make that a trap.
constexpr std::size_t kLongestToken = 4096;

// The character that ends at `at` > 0.
Character character_before(std::string_view text, std::size_t at) {
  for (std::size_t length = std::min<std::size_t>(4, at); length > 1; --length)
    if (const Character c = character_at(text, at - length); c.length == length) return c;
  return character_at(text.substr(0, at), at - 1);
}

bool touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && is_word_character(character_before(text, begin).code)) ||
         (end < text.size() && is_word_character(character_at(text, end).code));
}

// Where the white space before `at` begins, but not before `first`.
std::size_t space_begin(std::string_view text, std::size_t first, std::size_t at) {
  while (at > first) {
    const Character c = character_before(text, at);
    if (!is_white_space(c.code)) break;
    at -= c.length;
  }
  return at;
}

std::size_t space_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_white_space(character_at(text, at).code)) at += character_at(text, at).length;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer) : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.content.size() > kLongestToken)
      throw Error(
          ErrorCode::bad_input,
          fmt::format("special token {} has {} bytes, more than {}", token.id, token.content.size(), kLongestToken),
          "the file is damaged or was written by a faulty converter");
    Draft draft(token.content, 0);
    if (token.normalized) normalizer.apply(draft);
    if (draft.text().empty()) continue;
    for (const bool special : {false, true})
      if (special || !token.special) sets_[token.normalized][special].add(draft.text(), static_cast<std::int32_t>(i));
  }
  for (auto& sets : sets_)
    for (SpecialTokens& set : sets) set.finish();
}

void AddedTokens::split(std::string_view text, bool normalized, bool special, const Visit& visit) const {
  const SpecialTokens& set = sets_[normalized][special];
  std::size_t done = 0;  // what stands before has been visited
  std::size_t looked = 0;
  while (const auto match = set.find(text, looked)) {
    looked = match->end;
    const AddedToken& token = tokens_[static_cast<std::size_t>(match->id)];
    if (token.at_start && match->begin != 0) continue;
    if (token.single_word && touches_word(text, match->begin, match->end)) continue;
    std::size_t begin = match->begin, end = match->end;
    // What the token before it took along is not looked at again.
    if (token.strip_left) begin = space_begin(text, done, begin);
    begin = std::max(begin, done);
    end = std::max(end, done);
    if (token.strip_right) end = space_end(text, end);
    if (done < begin) visit(done, begin, -1);
    visit(begin, end, token.id);
    done = end;
  }
  if (done < text.size()) visit(done, text.size(), -1);
}

}  // namespace regard
