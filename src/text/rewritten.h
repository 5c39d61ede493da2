#pragma once
// A text after rewriting (a normal form, an added space), which remembers where its bytes came from.

#include <cstdint>
#include <optional>
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

  // The bytes of the source that a byte range of `text()` came from. What was replaced is taken whole; what was taken
  // away belongs to no range but one that has something of both its sides.
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

// Collects what changes in a text; what does not is copied in long stretches.
class Changes {
 public:
  explicit Changes(std::string_view text) : text_(text) {}
  // [begin, end) of the text becomes `with`; changes come in order and do not overlap. Error{bad_input} when the result
  // grows out of all proportion.
  void replace(std::size_t begin, std::size_t end, std::string_view with);
  // The text with its changes; nothing when there were none.
  std::optional<Rewritten> finish();

 private:
  std::string_view text_;
  std::size_t kept_ = 0;  // what stands before is in result_
  std::optional<Rewritten> result_;
};

}  // namespace regard
