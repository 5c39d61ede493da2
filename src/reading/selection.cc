#include "reading/selection.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "tensor/error.h"

namespace regard {
namespace {

// What there is to choose from.
struct Choice {
  std::int64_t count = 0, end = 0;  // end: what negative numbers count from
  std::string_view what;
};

std::string what_there_is(const Choice& choice) {
  const auto [count, end, what] = choice;
  if (end < count)
    return fmt::format("there are {} {}s at most: 0 to {}, or -{} to -1 from the end of the prompt", count, what,
                       count - 1, end);
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

std::int64_t index(std::int64_t i, const Choice& choice) {
  if (i < -choice.end || i >= choice.count)
    throw Error(ErrorCode::usage, fmt::format("there is no {} {}", choice.what, i), what_there_is(choice));
  return i < 0 ? i + choice.end : i;
}

void add_once(std::vector<std::int64_t>& chosen, std::vector<bool>& taken, std::int64_t i) {
  if (!taken[i]) chosen.push_back(i);
  taken[i] = true;
}

}  // namespace

std::vector<std::int64_t> select(std::string_view text, std::int64_t count, std::string_view what,
                                 std::optional<std::int64_t> prompt) {
  const Choice choice{.count = count, .end = prompt.value_or(count), .what = what};
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
      add_once(chosen, taken, index(number(part, text, what), choice));
    } else {
      const std::string_view low = part.substr(0, colon), high = part.substr(colon + 1);
      // A bound may be `count`, just past the end.
      const auto bound = [&](std::string_view written) {
        const std::int64_t i = number(written, text, what);
        return i == count ? count : index(i, choice);
      };
      const std::int64_t first = low.empty() ? 0 : bound(low), last = high.empty() ? count : bound(high);
      for (std::int64_t i = first; i < last; ++i) add_once(chosen, taken, i);
    }
  }
  if (chosen.empty())
    throw Error(ErrorCode::usage, fmt::format("'{}' chooses no {}", text, what), what_there_is(choice));
  return chosen;
}

bool open_ended(std::string_view text) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part == "*" || part.ends_with(':')) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<std::int64_t> select(const std::vector<std::int64_t>& indices, std::int64_t count, std::string_view what) {
  const Choice choice{.count = count, .end = count, .what = what};
  std::vector<std::int64_t> chosen;
  std::vector<bool> taken(static_cast<std::size_t>(count));
  for (std::int64_t i : indices) add_once(chosen, taken, index(i, choice));
  return chosen;
}

}  // namespace regard
