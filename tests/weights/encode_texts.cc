// encode_texts TOKENIZER special|bare|plain: tokenizes what it is fed, for tools/compare_tokenizers.py.
//
// Standard input: texts, each as its length (four bytes, little-endian) and its bytes. Standard output: for each the
// number of its tokens (four bytes) and their ids (four bytes each). `special`: with the tokens that the file puts
// round a text; `bare`: without; `plain`: without, and no special token is read from the text. What cannot be encoded
// gives the number 0xFFFFFFFF. Standard error: MB/s of encoding alone.

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/error.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

int main(int count, char** arguments) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  if (count != 3) return 2;
  const std::string_view mode = arguments[2];
  try {
    const auto start = Clock::now();
    const regard::Tokenizer tokenizer(regard::load_tokenizer(arguments[1]));
    const double loading = Seconds(Clock::now() - start).count();
    const regard::EncodeOptions options{.parse_special = mode != "plain", .add_special = mode == "special"};
    double seconds = 0, bytes = 0;
    std::uint32_t length = 0;
    while (std::fread(&length, 4, 1, stdin) == 1) {
      std::string text(length, '\0');
      if (std::fread(text.data(), 1, length, stdin) != length) return 2;
      std::vector<std::int32_t> ids;
      std::uint32_t number = 0xFFFFFFFFu;
      const auto begin = Clock::now();
      try {
        ids = tokenizer.encode_ids(text, options);
        number = static_cast<std::uint32_t>(ids.size());
      } catch (const regard::Error& error) {
        fmt::print(stderr, "{}\n", error.message);
      }
      seconds += Seconds(Clock::now() - begin).count();
      bytes += length;
      std::fwrite(&number, 4, 1, stdout);
      std::fwrite(ids.data(), 4, ids.size(), stdout);
    }
    fmt::print(stderr, "{:.3f} s to load, {:.2f} MB/s\n", loading, seconds > 0 ? bytes / 1e6 / seconds : 0);
  } catch (const regard::Error& error) {
    fmt::print(stderr, "{}\n", error.message);
    return 1;
  }
}
