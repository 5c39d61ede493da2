#include "text/draft.h"

namespace regard {

Rewritten::Range Draft::source(std::int64_t begin, std::int64_t end) const {
  Rewritten::Range range{begin, end};
  for (auto rewrite = rewrites_.rbegin(); rewrite != rewrites_.rend(); ++rewrite)
    range = rewrite->source(range.begin, range.end);
  return {range.begin + base_, range.end + base_};
}

}  // namespace regard
