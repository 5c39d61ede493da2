#include "text/draft.h"

#include <limits>
#include <utility>

#include "tensor/error.h"

namespace regard {

void Draft::rewrite(Rewritten next) {
  if (next.text().size() > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::bad_input, "normalising this text makes it longer than 4 GiB", "give it in parts");
  rewrites_.push_back(std::move(next));
}

Rewritten::Range Draft::source(std::int64_t begin, std::int64_t end) const {
  Rewritten::Range range{begin, end};
  for (auto rewrite = rewrites_.rbegin(); rewrite != rewrites_.rend(); ++rewrite)
    range = rewrite->source(range.begin, range.end);
  return {range.begin + base_, range.end + base_};
}

}  // namespace regard
