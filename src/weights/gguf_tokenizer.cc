#include "weights/gguf_tokenizer.h"

#include <algorithm>
#include <limits>

#include "tensor/error.h"

namespace regard {

namespace {

const GgufArray* list(const GgufFile& gguf, std::string_view key, std::size_t vocabulary) {
  const GgufArray* array = gguf.find_array(key);
  if (array != nullptr && static_cast<std::size_t>(array->count) != vocabulary)
    throw Error(ErrorCode::bad_input, fmt::format("{}: the metadata key {} has {} elements, but there are {} tokens",
                                                  gguf.file, in_quotes(key), array->count, vocabulary));
  return array;
}

std::vector<std::string> strings(const GgufFile& gguf, std::string_view key) {
  const GgufArray* array = gguf.find_array(key);
  if (array == nullptr || array->element != GgufType::string)
    throw Error(ErrorCode::bad_input, fmt::format("{}: the metadata key {} is {}", gguf.file, in_quotes(key),
                                                  array == nullptr ? "missing" : "not a list of strings"));
  return {array->strings.begin(), array->strings.end()};
}

std::optional<std::int32_t> token_id(const GgufFile& gguf, std::string_view key, std::size_t vocabulary) {
  const std::optional<std::int64_t> id = gguf.find_integer(key);
  if (!id) return std::nullopt;
  if (*id < 0 || *id >= static_cast<std::int64_t>(vocabulary))
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the metadata key {} is {}, but the ids of its {} tokens go to {}", gguf.file,
                            in_quotes(key), *id, vocabulary, vocabulary - 1));
  return static_cast<std::int32_t>(*id);
}

// Keys that would change the ids of the two kinds of tokenizer we run, if they were set to something.
void refuse_what_changes_ids(const GgufFile& gguf) {
  const GgufArray* charsmap = gguf.find_array("tokenizer.ggml.precompiled_charsmap");
  if (charsmap != nullptr && charsmap->count > 0)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: a tokenizer with a 'tokenizer.ggml.precompiled_charsmap' is not supported", gguf.file));
  if (gguf.find_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false))
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: 'tokenizer.ggml.remove_extra_whitespaces' is not supported", gguf.file));
}

}  // namespace

TokenizerSpec tokenizer_from_gguf(const GgufFile& gguf) {
  TokenizerSpec spec;
  const std::string_view kind = gguf.string("tokenizer.ggml.model");
  if (kind == "gpt2")
    spec.kind = TokenizerSpec::Kind::byte_level_bpe;
  else if (kind == "llama")
    spec.kind = TokenizerSpec::Kind::sentencepiece_bpe;
  else
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the tokenizer {} is not supported", gguf.file, in_quotes(kind)),
                "supported are 'gpt2' (byte-level BPE) and 'llama' (SentencePiece BPE)");
  const bool byte_level = spec.kind == TokenizerSpec::Kind::byte_level_bpe;
  refuse_what_changes_ids(gguf);
  if (byte_level) spec.pre = gguf.find_string("tokenizer.ggml.pre").value_or("");

  spec.pieces = strings(gguf, "tokenizer.ggml.tokens");
  const std::size_t vocabulary = spec.pieces.size();
  if (vocabulary > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw Error(ErrorCode::bad_input, fmt::format("{}: {} tokens are more than ids can count", gguf.file, vocabulary));
  if (const GgufArray* scores = list(gguf, "tokenizer.ggml.scores", vocabulary)) {
    if (scores->element != GgufType::f32 && scores->element != GgufType::f64)
      throw Error(ErrorCode::bad_input, fmt::format("{}: 'tokenizer.ggml.scores' holds {}, not numbers", gguf.file,
                                                    name_of(scores->element)));
    for (std::int64_t i = 0; i < scores->count; ++i) spec.scores.push_back(static_cast<float>(scores->number(i)));
  } else if (!byte_level) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the metadata key 'tokenizer.ggml.scores' is missing", gguf.file));
  }
  if (list(gguf, "tokenizer.ggml.token_type", vocabulary) != nullptr) {
    const std::vector<std::int64_t> numbers = *gguf.find_integers("tokenizer.ggml.token_type");
    for (const std::int64_t type : numbers) {
      if (type < 1 || type > 6)
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: 'tokenizer.ggml.token_type' gives token {} the unknown type {}", gguf.file,
                                spec.types.size(), type));
      spec.types.push_back(static_cast<TokenType>(type));
    }
  }
  if (byte_level) spec.merges = strings(gguf, "tokenizer.ggml.merges");

  // What a file that is silent means: as ggml reads it.
  const bool llama3 = spec.pre == "llama3" || spec.pre == "llama-v3" || spec.pre == "llama-bpe";
  spec.add_bos = gguf.find_bool("tokenizer.ggml.add_bos_token").value_or(!byte_level || llama3);
  spec.add_eos = gguf.find_bool("tokenizer.ggml.add_eos_token").value_or(false);
  spec.add_space_prefix = gguf.find_bool("tokenizer.ggml.add_space_prefix").value_or(!byte_level);
  spec.bos = token_id(gguf, "tokenizer.ggml.bos_token_id", vocabulary);
  spec.eos = token_id(gguf, "tokenizer.ggml.eos_token_id", vocabulary);
  spec.unknown = token_id(gguf, "tokenizer.ggml.unknown_token_id", vocabulary);
  spec.padding = token_id(gguf, "tokenizer.ggml.padding_token_id", vocabulary);
  if (!byte_level && vocabulary > 2) {
    if (!spec.bos) spec.bos = 1;
    if (!spec.eos) spec.eos = 2;
    if (!spec.unknown) spec.unknown = 0;
  }
  if (spec.add_bos && !spec.bos)
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: a BOS is to be added to every text, but 'tokenizer.ggml.bos_token_id' is missing", gguf.file));
  if (spec.add_eos && !spec.eos)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: an EOS is to be added to every text, but 'tokenizer.ggml.eos_token_id' is missing",
                            gguf.file));
  spec.chat_template = gguf.find_string("tokenizer.chat_template").value_or("");
  return spec;
}

}  // namespace regard
