#include "text/nearest_word.h"

#include <algorithm>

namespace regard {

namespace {

std::size_t mistakes(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t fewest = word.size() / 3 + 2;  // more mistakes than that and it is another word
  for (const std::string& name : names) {
    const std::size_t n = mistakes(word, name);
    if (n < fewest && n < name.size()) {
      fewest = n;
      best = name;
    }
  }
  return best;
}

}  // namespace regard
