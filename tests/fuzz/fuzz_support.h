#pragma once
// What the fuzz targets share. The property of all of them: bytes become a value that can be used, or a regard::Error
// of one line; any other exception leaves here and ends the run, as a crash does.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dequantize.h"
#include "support/temp_folder.h"
#include "tensor/error.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace regard::testing {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return size == 0 ? std::string_view() : std::string_view(reinterpret_cast<const char*>(data), size);
}

inline void require(bool holds) {
  if (!holds) std::abort();
}

// Nothing but an Error that says something, in one line.
inline void value_or_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    require(!error.message.empty() && error.message.find('\n') == std::string::npos);
  }
}

// Reads every number of every matrix.
inline void use(const Checkpoint& checkpoint) {
  std::vector<float> row;
  for (const auto& [name, matrix] : checkpoint.matrices) {
    row.resize(static_cast<std::size_t>(matrix.cols));
    for (std::int64_t n = 0; n < matrix.rows; ++n) dequantize(matrix, n, 0, matrix.cols, row.data());
  }
  if (checkpoint.encoder) use(*checkpoint.encoder);
}

// Reads texts and puts their tokens back together; the tokens' ranges are of the text.
inline void use(const Tokenizer& tokenizer, std::string_view tail) {
  for (const std::string_view text :
       {std::string_view("The caf\xC3\xA9 <s> 12 a\xCC\x81\xEF\xBC\xA1\xE6\x88\x91\n  ab\xFF\xC3 it's"), tail}) {
    value_or_error([&] {
      for (const Token& token : tokenizer.encode(text)) {
        require(token.id >= 0 && token.id < tokenizer.vocabulary());
        require(0 <= token.begin && token.begin <= token.end && token.end <= static_cast<std::int64_t>(text.size()));
      }
      tokenizer.decode(tokenizer.encode_ids(text));
    });
  }
}

// The last bytes of an input, as a text.
inline std::string_view tail_of(std::string_view input) {
  return input.substr(input.size() - std::min<std::size_t>(input.size(), 64));
}

}  // namespace regard::testing
