// Bytes as the config.json of a folder: the first line names the model of tests/data/families whose weights lie beside
// it, the rest is the file.

#include <algorithm>

#include "fuzz/fuzz_support.h"
#include "fuzz/run_model.h"

using namespace regard;

namespace {

bool is_name(std::string_view name) {
  return !name.empty() && name.size() < 40 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path families = REGARD_TEST_DATA "/families";
  static const testing::TempFolder scratch;
  const std::string_view input = testing::text_of(data, size);
  const std::size_t line = input.find('\n');
  if (line == std::string_view::npos || !is_name(input.substr(0, line))) return 0;
  const std::string family(input.substr(0, line));
  const std::filesystem::path weights = families / family / "model.safetensors", folder = scratch / family;
  if (!std::filesystem::exists(weights)) return 0;
  if (std::filesystem::create_directory(folder)) std::filesystem::create_symlink(weights, folder / "model.safetensors");
  testing::write_file(folder / "config.json", std::string(input.substr(line + 1)));
  testing::value_or_error([&] { testing::load_and_run(folder); });
  return 0;
}
