// Bytes as a tokenizer.json.

#include "fuzz/fuzz_support.h"
#include "weights/tokenizer_json.h"

using namespace regard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const testing::TempFolder folder;
  const std::string_view input = testing::text_of(data, size);
  const std::filesystem::path file = folder / "tokenizer.json";
  testing::write_file(file, std::string(input));
  testing::value_or_error([&] { testing::use(Tokenizer(tokenizer_from_json(file)), testing::tail_of(input)); });
  return 0;
}
