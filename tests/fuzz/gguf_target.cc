// Bytes as a .gguf file: its header, its configuration, its tokenizer, its weights; and what can be loaded can be run.

#include "fuzz/fuzz_support.h"
#include "fuzz/run_model.h"

using namespace regard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const testing::TempFolder folder;
  const std::string_view input = testing::text_of(data, size);
  const std::filesystem::path file = folder / "x.gguf";
  testing::write_file(file, std::string(input));
  testing::value_or_error([&] { testing::use(Tokenizer(load_tokenizer(file)), testing::tail_of(input)); });
  testing::value_or_error([&] { testing::load_and_run(file); });
  return 0;
}
