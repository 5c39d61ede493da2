#pragma once
// A text after rewriting (a normal form, an added space), which remembers where its bytes came from.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

class Rewritten {
 public:
  // Built from the front to the back of the source: `keep` copies `text`, `replace` puts `with` where the source has
  // `source_bytes` bytes (0: an insertion).
  void keep(std::string_view text);
  void replace(std::int64_t source_bytes, std::string_view with);

  std::string_view text() const { return text_; }

  // The bytes of the source that a byte range of `text()` came from. What was replaced is taken whole.
  struct Range {
    std::int64_t begin, end;
  };
  Range source(std::int64_t begin, std::int64_t end) const;

 private:
  struct Edit {
    std::int64_t begin, end;                // in text_
    std::int64_t source_begin, source_end;  // in the source
  };

  std::string text_;
  std::int64_t source_ = 0;  // bytes of the source used so far
  std::vector<Edit> edits_;  // ascending
};

}  // namespace regard
