#include "text/piece_trie.h"

#include <algorithm>

namespace regard {

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> pieces) : first_(256, kNone) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // Level by level: a node is a range of the sorted pieces that share their first `depth` bytes.
  struct Range {
    std::size_t begin, end;
  };
  std::vector<Range> level{{0, pieces.size()}};
  nodes_.reserve(pieces.size() + 2);
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    std::vector<Range> next;
    for (Range range : level) {
      Node node{static_cast<std::uint32_t>(bytes_.size()), -1};
      for (; range.begin < range.end && pieces[range.begin].first.size() == depth; ++range.begin)
        if (depth > 0) node.value = pieces[range.begin].second;
      while (range.begin < range.end) {
        const auto byte = static_cast<std::uint8_t>(pieces[range.begin].first[depth]);
        std::size_t end = range.begin;
        while (end < range.end && static_cast<std::uint8_t>(pieces[end].first[depth]) == byte) ++end;
        bytes_.push_back(byte);
        if (depth == 0) first_[byte] = static_cast<std::uint32_t>(bytes_.size());
        next.push_back({range.begin, end});
        range.begin = end;
      }
      nodes_.push_back(node);
    }
    level = std::move(next);
  }
  nodes_.push_back({static_cast<std::uint32_t>(bytes_.size()), -1});
}

}  // namespace regard
