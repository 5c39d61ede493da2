#include "text/split_behaviour.h"

#include <algorithm>

namespace regard {

void put_words(std::vector<Stretch>& stretches, CutStep::Behaviour behaviour, std::vector<Word>& out) {
  using Behaviour = CutStep::Behaviour;
  // Joins each stretch to the one before it where `joins(stretch, before)`.
  const auto join = [&](auto begin, auto end, const auto& joins) {
    bool before = false, first = true;
    std::size_t last = 0;
    std::vector<Stretch> joined;
    for (auto stretch = begin; stretch != end; ++stretch) {
      if (!first && joins(stretch->matches, before)) {
        joined[last].begin = std::min(joined[last].begin, stretch->begin);
        joined[last].end = std::max(joined[last].end, stretch->end);
      } else {
        joined.push_back(*stretch);
        last = joined.size() - 1;
      }
      before = stretch->matches;
      first = false;
    }
    return joined;
  };
  const auto follows = [](bool matches, bool before) { return matches && !before; };
  switch (behaviour) {
    case Behaviour::removed:
      std::erase_if(stretches, [](const Stretch& stretch) { return stretch.matches; });
      break;
    case Behaviour::isolated:
      break;
    case Behaviour::contiguous:
      stretches = join(stretches.begin(), stretches.end(), [](bool matches, bool before) { return matches == before; });
      break;
    case Behaviour::merged_with_previous:
      stretches = join(stretches.begin(), stretches.end(), follows);
      break;
    case Behaviour::merged_with_next:
      stretches = join(stretches.rbegin(), stretches.rend(), follows);
      std::reverse(stretches.begin(), stretches.end());
      break;
  }
  for (const Stretch& stretch : stretches)
    if (stretch.end > stretch.begin) out.push_back({stretch.begin, stretch.end});
}

}  // namespace regard
