#pragma once
// A part of a text on its way to tokens: as rewritten so far, cut into words so far.

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/rewritten.h"

namespace regard {

// A stretch [begin, end) of a draft's text; already a token where `token` is not negative.
struct Word {
  std::uint32_t begin, end;
  std::int32_t token = -1;
};

class Draft {
 public:
  // `source` outlives the draft and begins at byte `base` of the whole text.
  Draft(std::string_view source, std::int64_t base) : source_(source), base_(base) {}

  std::string_view text() const { return rewrites_.empty() ? source_ : rewrites_.back().text(); }
  bool is_rewritten() const { return !rewrites_.empty(); }
  // Takes the next form of `text()`. The words must be given anew.
  void rewrite(Rewritten next) { rewrites_.push_back(std::move(next)); }
  // Where a byte range of `text()` came from, in the whole text.
  Rewritten::Range source(std::int64_t begin, std::int64_t end) const;
  bool opens_whole_text(const Word& word) const { return source(word.begin, word.end).begin == 0; }

  std::vector<Word> words;  // ascending; what lies in none of them becomes no token

 private:
  std::string_view source_;
  std::int64_t base_;
  std::vector<Rewritten> rewrites_;
};

}  // namespace regard
