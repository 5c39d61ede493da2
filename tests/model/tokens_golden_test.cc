// Token ids and bytes on real vocabularies, against llama.cpp's (tests/data/text/README.md).

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/models.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace regard {
namespace {

bool model_folder_named() { return std::getenv("REGARD_TEST_MODELS") != nullptr; }

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

void expect_goldens(const std::filesystem::path& model, const std::string& goldens) {
  const Tokenizer tokenizer(load_tokenizer(model));
  std::ifstream file(REGARD_TEST_DATA "/text/" + goldens);
  const auto cases = nlohmann::json::parse(file);
  EXPECT_EQ(cases.size(), 24u);
  for (const auto& one : cases) {
    const std::string text = one["text"];
    SCOPED_TRACE(text);
    const std::vector<Token> tokens = tokenizer.encode(text);
    ASSERT_EQ(tokens.size(), one["ids"].size());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string piece = from_hex(one["pieces_hex"][i]);
      EXPECT_EQ(tokens[i].id, one["ids"][i].get<std::int32_t>());
      EXPECT_EQ(tokenizer.bytes(tokens[i].id), piece);
      // Each token's range holds its very bytes, but for a BOS that was added.
      if (i == 0 && tokenizer.spec().add_bos) continue;
      EXPECT_EQ(tokens[i].begin, at);
      EXPECT_EQ(text.substr(static_cast<std::size_t>(at), piece.size()), piece);
      at = tokens[i].end;
    }
    EXPECT_EQ(at, static_cast<std::int64_t>(text.size()));
  }
}

TEST(TokensGolden, SmolLM2) {
  const std::filesystem::path model = testing::real_model("smollm2");
  if (!model_folder_named()) GTEST_SKIP() << "REGARD_TEST_MODELS names no folder: ./check fetches the models";
  ASSERT_FALSE(model.empty()) << "the folder that REGARD_TEST_MODELS names does not have the file";
  expect_goldens(model, "tokens_smollm2.json");
}

TEST(TokensGolden, Gemma3) {
  const std::filesystem::path model = testing::real_model("gemma3-270m");
  if (!model_folder_named()) GTEST_SKIP() << "REGARD_TEST_MODELS names no folder: ./check fetches the models";
  ASSERT_FALSE(model.empty()) << "the folder that REGARD_TEST_MODELS names does not have the file";
  expect_goldens(model, "tokens_gemma3.json");
}

}  // namespace
}  // namespace regard
