#include "reading/selection.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "tensor/error.h"

namespace regard {
namespace {

std::string what_there_is(std::int64_t count, std::string_view what) {
  if (count == 0) return fmt::format("there is no {} at all", what);
  if (count == 1) return fmt::format("there is one {}: 0", what);
  return fmt::format("there are {} {}s: 0 to {}, or -{} to -1 from the end", count, what, count - 1, count);
}

[[noreturn]] void not_understood(std::string_view text, std::string_view what) {
  throw Error(ErrorCode::usage, fmt::format("'{}' does not choose a {}", text, what),
              "write 5, 2:7 (7 excluded), -1 (from the end), 1,4 or *");
}

std::int64_t number(std::string_view text, std::string_view whole, std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) not_understood(whole, what);
  return value;
}

std::int64_t index(std::int64_t i, std::int64_t count, std::string_view what) {
  if (i < -count || i >= count)
    throw Error(ErrorCode::usage, fmt::format("there is no {} {}", what, i), what_there_is(count, what));
  return i < 0 ? i + count : i;
}

void add_once(std::vector<std::int64_t>& chosen, std::vector<bool>& taken, std::int64_t i) {
  if (!taken[i]) chosen.push_back(i);
  taken[i] = true;
}

}  // namespace

std::vector<std::int64_t> select(std::string_view text, std::int64_t count, std::string_view what) {
  std::vector<std::int64_t> chosen;
  std::vector<bool> taken(static_cast<std::size_t>(count));
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = part.find(':');
    if (part == "*") {
      for (std::int64_t i = 0; i < count; ++i) add_once(chosen, taken, i);
    } else if (colon == std::string_view::npos) {
      add_once(chosen, taken, index(number(part, text, what), count, what));
    } else {
      const std::string_view low = part.substr(0, colon), high = part.substr(colon + 1);
      // A bound may be `count`, just past the end.
      const auto bound = [&](std::string_view written) {
        const std::int64_t i = number(written, text, what);
        return i == count ? count : index(i, count, what);
      };
      const std::int64_t first = low.empty() ? 0 : bound(low), last = high.empty() ? count : bound(high);
      for (std::int64_t i = first; i < last; ++i) add_once(chosen, taken, i);
    }
  }
  if (chosen.empty())
    throw Error(ErrorCode::usage, fmt::format("'{}' chooses no {}", text, what), what_there_is(count, what));
  return chosen;
}

std::vector<std::int64_t> select(const std::vector<std::int64_t>& indices, std::int64_t count, std::string_view what) {
  std::vector<std::int64_t> chosen;
  std::vector<bool> taken(static_cast<std::size_t>(count));
  for (std::int64_t i : indices) add_once(chosen, taken, index(i, count, what));
  return chosen;
}

}  // namespace regard
