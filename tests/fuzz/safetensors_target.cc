// Bytes as a folder of safetensors files: two bytes say how long an index is that comes next, 0 for none; the rest is
// model.safetensors, or shard.safetensors where there is an index.

#include "fuzz/fuzz_support.h"
#include "weights/safetensors.h"

using namespace regard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view input = testing::text_of(data + 2, size - 2);
  const std::size_t length = std::min<std::size_t>(data[0] + 256 * data[1], input.size());
  const testing::TempFolder folder;
  if (length > 0) testing::write_file(folder / "model.safetensors.index.json", std::string(input.substr(0, length)));
  testing::write_file(folder / (length > 0 ? "shard.safetensors" : "model.safetensors"),
                      std::string(input.substr(length)));
  testing::value_or_error([&] {
    const SafetensorsFiles files = read_safetensors(folder.path());
    std::int64_t bytes = 0;
    unsigned sum = 0;
    for (const auto& [name, tensor] : files.tensors) {
      bytes += tensor.bytes;
      for (std::int64_t i = 0; i < tensor.bytes; ++i) sum += static_cast<unsigned>(tensor.data[i]);
    }
    testing::require(sum < ~0u && bytes <= static_cast<std::int64_t>(input.size()));
  });
  return 0;
}
