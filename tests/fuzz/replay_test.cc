// Every input kept from fuzzing, through its target again.

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_folder.h"

extern "C" {
int fuzz_gguf(const std::uint8_t* data, std::size_t size);
int fuzz_safetensors(const std::uint8_t* data, std::size_t size);
int fuzz_config(const std::uint8_t* data, std::size_t size);
int fuzz_tokenizer_json(const std::uint8_t* data, std::size_t size);
int fuzz_sentencepiece(const std::uint8_t* data, std::size_t size);
int fuzz_edit(const std::uint8_t* data, std::size_t size);
}

namespace regard {
namespace {

void replay(const std::string& corpus, int (*target)(const std::uint8_t*, std::size_t)) {
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(REGARD_FUZZ_CORPUS) / corpus)) {
    SCOPED_TRACE(entry.path().string());
    const std::string bytes = testing::read_file(entry.path());
    EXPECT_NO_THROW(target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    ++inputs;
  }
  EXPECT_GT(inputs, 5);
}

TEST(Replay, Gguf) { replay("gguf", fuzz_gguf); }
TEST(Replay, Safetensors) { replay("safetensors", fuzz_safetensors); }
TEST(Replay, Config) { replay("config", fuzz_config); }
TEST(Replay, TokenizerJson) { replay("tokenizer_json", fuzz_tokenizer_json); }
TEST(Replay, SentencePiece) { replay("sentencepiece", fuzz_sentencepiece); }
TEST(Replay, EditLanguage) { replay("edit", fuzz_edit); }

}  // namespace
}  // namespace regard
