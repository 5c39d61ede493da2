#pragma once
// Pieces found by walking along a text: one step for each byte, whatever pieces there are.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace regard {

class PieceTrie {
 public:
  // (text, value >= 0); of equal texts the later one counts, and an empty one is passed over. Memory is a few bytes for
  // each byte of the texts.
  explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> pieces);

  static constexpr std::uint32_t kRoot = 0, kNone = 0xFFFFFFFFu;
  // The node behind `node` for `byte`, or kNone.
  std::uint32_t step(std::uint32_t node, std::uint8_t byte) const {
    if (node == kRoot) return first_[byte];
    const Node& from = nodes_[node];
    std::uint32_t low = from.children, high = nodes_[node + 1].children;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (bytes_[middle] < byte)
        low = middle + 1;
      else
        high = middle;
    }
    // Children are numbered as they are laid out, after the root.
    return low < nodes_[node + 1].children && bytes_[low] == byte ? low + 1 : kNone;
  }
  // The value of the piece that ends at `node`, or -1.
  std::int32_t value(std::uint32_t node) const { return nodes_[node].value; }

 private:
  struct Node {
    std::uint32_t children;  // where its children begin in bytes_; they end where the next node's begin
    std::int32_t value;
  };
  std::vector<Node> nodes_;           // breadth first; one more at the end
  std::vector<std::uint8_t> bytes_;   // of node i + 1: the byte that leads to it
  std::vector<std::uint32_t> first_;  // [256] from the root
};

}  // namespace regard
