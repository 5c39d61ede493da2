#pragma once
// Small vocabularies made by hand, and texts of every kind.

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"

namespace regard::testing {

// GPT-2's letters for `bytes`, as files write byte-level pieces.
inline std::string letters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += byte_letter(static_cast<std::uint8_t>(c));
  return text;
}

// Ids 0 to 255 are the bytes; then one piece for each merge of (left, right), given as bytes.
inline TokenizerSpec byte_level_spec(const std::vector<std::pair<std::string, std::string>>& merges,
                                     std::string pre = "gpt-2") {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::byte_level_bpe;
  spec.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) spec.pieces.push_back(byte_letter(static_cast<std::uint8_t>(byte)));
  for (const auto& [left, right] : merges) {
    spec.pieces.push_back(letters(left + right));
    spec.merges.push_back(letters(left) + ' ' + letters(right));
  }
  spec.types.assign(spec.pieces.size(), TokenType::normal);
  return spec;
}

// "<unk>" 0, "<s>" 1, "</s>" 2, the 256 byte pieces from 3, then `pieces` from 259, each scored below the one before.
inline TokenizerSpec sentencepiece_spec(const std::vector<std::string>& pieces) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::sentencepiece_bpe;
  spec.pieces = {"<unk>", "<s>", "</s>"};
  spec.types = {TokenType::unknown, TokenType::control, TokenType::control};
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    spec.pieces.push_back(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + '>');
    spec.types.push_back(TokenType::byte);
  }
  spec.scores.assign(spec.pieces.size(), 0.0f);
  for (const std::string& piece : pieces) {
    spec.scores.push_back(-static_cast<float>(spec.pieces.size()));
    spec.pieces.push_back(piece);
    spec.types.push_back(TokenType::normal);
  }
  spec.unknown = 0;
  spec.bos = 1;
  spec.eos = 2;
  return spec;
}

inline std::int32_t add_piece(TokenizerSpec& spec, std::string piece, TokenType type, float score = -1000) {
  spec.pieces.push_back(std::move(piece));
  spec.types.push_back(type);
  if (!spec.scores.empty()) spec.scores.push_back(score);
  return static_cast<std::int32_t>(spec.pieces.size()) - 1;
}

// Valid UTF-8 in which what tokenizers look at is frequent: words, numbers, every kind of white space, contractions,
// marks, emoji, letters of all planes.
inline std::string random_text(std::mt19937& rng, int most_parts = 12) {
  static const std::vector<std::u32string> pools = {
      U"abcdefghijklmnopqrstuvwxyzABCDEFGHIJ            ",
      U"0123456789.,-+ \u00B2\u00BD\u2167\u0663",
      U" \t\n\r\u00A0\u2003\u3000\u000B\u000C\u0085\u2028\u2029\u180E\u200B",
      U"'sStTdDmMrReEvVlL\u017F ",
      U"!@#$%^&*()_+-=[]{};:\",./<>?|\\`~ ",
      U"\u00E9\u00E8e\u0301a\u0308\u0323\u0344\u212B\u00C5A\u030A\u1100\u1161\u11A8\uAC00\u0958",
      U"\u6211\u6628\u5929\u4E70\u4E86\u3072\u3089\u30AB\uFF0C\u3002",
      U"\U0001F600\U0001F44D\U0001F3FD\u200D\U0001F468\U0001F1E8\U0001F1F3\u2764\uFE0F",
      U"\u0645\u0631\u062D \u05E9\u05DC \u0939\u093F\u0928\u094D \u0E44\u0E17\u0E22",
  };
  std::string text;
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(rng); };
  for (std::size_t parts = below(static_cast<std::size_t>(most_parts)); parts > 0; --parts) {
    const std::size_t kind = below(pools.size() + 2);
    if (kind < pools.size()) {
      for (std::size_t n = below(10); n > 0; --n) append_utf8(text, pools[kind][below(pools[kind].size())]);
    } else if (kind == pools.size()) {
      const char32_t repeated = pools[2][below(6)];
      for (std::size_t n = below(20); n > 0; --n) append_utf8(text, repeated);
    } else {
      for (std::size_t n = below(6); n > 0;) {
        const auto code = static_cast<std::uint32_t>(below(below(2) == 0 ? 0x3000 : 0x110000));
        if (code >= 0xD800 && code < 0xE000) continue;
        append_utf8(text, code);
        --n;
      }
    }
  }
  return text;
}

// Any bytes, often nearly UTF-8.
inline std::string random_bytes(std::mt19937& rng) {
  std::string text = random_text(rng, 6);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(rng); };
  for (std::size_t n = below(6); n > 0; --n) {
    const char byte = static_cast<char>(below(256));
    if (text.empty() || below(2) == 0)
      text.insert(below(text.size() + 1), 1, byte);
    else
      text[below(text.size())] = byte;
  }
  return text;
}

}  // namespace regard::testing
