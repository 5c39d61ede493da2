#include "report/head_grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "report/phrases.h"

namespace regard {
namespace {

constexpr float kWeak = 0.1f;  // a head that reads nothing more strongly than this gets no letter
constexpr std::size_t kLetters = 26;

// The positions that heads read most, each with a letter; letters go along the text.
std::map<std::int64_t, char> lettered_positions(std::span<const HeadRead> reads) {
  std::map<std::int64_t, double> mass;
  for (const HeadRead& read : reads)
    if (read.key >= 0 && read.weight >= kWeak) mass[read.key] += read.weight;
  std::vector<std::pair<std::int64_t, double>> order(mass.begin(), mass.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (order.size() > kLetters) order.resize(kLetters);
  std::sort(order.begin(), order.end());
  std::map<std::int64_t, char> letters;
  for (const auto& [position, unused] : order) letters[position] = static_cast<char>('A' + letters.size());
  return letters;
}

Piece cell(const HeadGrid& grid, const HeadRead& read, const std::map<std::int64_t, char>& letters, int columns) {
  std::string note = fmt::format("layer {} head {}", grid.layers[static_cast<std::size_t>(read.layer)],
                                 grid.heads[static_cast<std::size_t>(read.head)]);
  if (read.key >= 0) note += fmt::format(": {} {:.2f}", grid.labels[static_cast<std::size_t>(read.key)], read.weight);
  if (read.sink > 0) note += fmt::format(", sink {:.2f}", read.sink);
  if (read.key < 0 || read.weight < kWeak) {
    return {padded("·", columns), columns, kFaint, std::move(note)};
  }
  const auto letter = letters.find(read.key);
  const std::string text = letter == letters.end() ? "+" : std::string(1, letter->second);
  return {padded(text, columns), columns, {.heat = read.weight}, std::move(note)};
}

void add_layer_numbers(Page& page, const HeadGrid& grid, std::size_t begin, std::size_t end, int label, int columns) {
  std::string numbers = padded("layer", label);
  for (std::size_t l = begin; l < end; ++l) {
    const int at = label + static_cast<int>(l - begin) * columns;
    const bool free = static_cast<int>(numbers.size()) < at || l == begin;
    if (!free || ((l - begin) % 5 != 0 && columns * 5 > 4)) continue;
    numbers = padded(numbers, at) + std::to_string(grid.layers[l]);
  }
  page.add_line(numbers, kFaint);
}

void add_scale(Page& page) {
  Line& line = page.add_line("  ");
  for (const double value : {0.1, 0.3, 0.5, 0.7, 0.9}) {
    line.push_back(piece(fmt::format(" {:.1f} ", value), {.heat = value}));
  }
  line.push_back(piece("  strongest read;  · below 0.1", kFaint));
}

}  // namespace

void add_head_grid(Page& page, const HeadGrid& grid) {
  const std::map<std::int64_t, char> letters = lettered_positions(grid.reads);
  int label = 8;
  for (const std::int64_t head : grid.heads) label = std::max(label, static_cast<int>(std::to_string(head).size()) + 6);
  const auto room = static_cast<std::size_t>(std::max(grid.width - label, 8));
  const int columns = grid.layers.size() * 2 <= room ? 2 : 1;
  const std::size_t per_block = room / static_cast<std::size_t>(columns);

  for (std::size_t begin = 0; begin < grid.layers.size(); begin += per_block) {
    const std::size_t end = std::min(begin + per_block, grid.layers.size());
    add_layer_numbers(page, grid, begin, end, label, columns);
    for (std::size_t h = 0; h < grid.heads.size(); ++h) {
      Line& line = page.add_line(padded(fmt::format("head {}", grid.heads[h]), label), kFaint);
      for (std::size_t l = begin; l < end; ++l)
        line.push_back(cell(grid, grid.reads[l * grid.heads.size() + h], letters, columns));
    }
  }
  add_scale(page);

  // The legend, as many to a line as fit.
  page.add_line("  ");
  bool others = false;
  for (const HeadRead& read : grid.reads)
    others |= read.key >= 0 && read.weight >= kWeak && !letters.contains(read.key);
  std::vector<std::string> entries;
  std::vector<std::int64_t> positions;
  for (const auto& entry : letters) positions.push_back(entry.first);
  const bool placed = need_places(grid.labels, positions);
  for (const auto& [position, letter] : letters)
    entries.push_back(fmt::format("{} {}{}", letter, placed ? fmt::format("{} ", position) : "",
                                  grid.labels[static_cast<std::size_t>(position)]));
  if (others) entries.push_back("+ another");
  for (const std::string& entry : entries) {
    const Piece next = piece(entry + "  ");
    if (regard::columns(page.lines.back()) + next.columns > grid.width) page.add_line("  ");
    page.lines.back().push_back(next);
  }
}

}  // namespace regard
