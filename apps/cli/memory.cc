#include "memory.h"

#include <cctype>
#include <charconv>
#include <fstream>
#include <string>

#include "tensor/error.h"

namespace regard::cli {

std::int64_t parse_bytes(std::string_view what, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1;
  if (!unit.empty()) {
    const std::size_t power = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    if (power != std::string_view::npos) {
      factor = static_cast<double>(std::int64_t{1} << (10 * (power + 1)));
      unit.remove_prefix(1);
    }
    if (unit == "B" || unit == "iB") unit = {};
  }
  if (error != std::errc() || !unit.empty() || !(number * factor >= 1 && number * factor < 0x1p60))
    throw Error(ErrorCode::usage, fmt::format("\"{}\" is not an amount of memory, {}", text, what),
                "write for instance 500M or 2G");
  return static_cast<std::int64_t>(number * factor);
}

std::int64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::int64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib << 10;
  }
  return std::int64_t{1} << 30;
}

}  // namespace regard::cli
