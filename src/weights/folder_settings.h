#pragma once
// The small files beside a vocabulary in a Hugging Face folder.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "text/piece_index.h"
#include "text/tokenizer_spec.h"
#include "weights/checked_json.h"

namespace regard {

struct FolderSettings {
  std::filesystem::path folder;
  // tokenizer_config.json, special_tokens_map.json, generation_config.json, config.json; nothing for one that is not
  // there.
  std::optional<JsonPlace> tokenizer, special, generation, model;

  // Errors as read_json's.
  explicit FolderSettings(const std::filesystem::path& folder);

  // What "bos_token" and the like say: "<s>", or {"content": "<s>", ...}; and its text.
  std::optional<JsonPlace> token_place(std::string_view member) const;
  std::optional<std::string> token(std::string_view member) const;
  // A member of tokenizer_config.json.
  bool flag(std::string_view member, bool otherwise) const;
  // "T5Tokenizer", for T5TokenizerFast too; what the model is called where the tokenizer's class is not.
  std::string family() const;
  // Of chat_template.jinja or else tokenizer_config.json, where the one named "default" counts.
  std::string chat_template() const;
};

// Ids by text, the later of equals.
PieceIndex ids_of(const TokenizerSpec& spec);

// How an added token is looked for: "special", "normalized", "single_word", "lstrip", "rstrip".
void read_flags(const JsonPlace& place, AddedToken& token);

// Sets BOS, EOS and their like in `spec` by what the settings name. Error{bad_input}: an id that the vocabulary does
// not have.
void name_tokens(const FolderSettings& settings, TokenizerSpec& spec);

}  // namespace regard
