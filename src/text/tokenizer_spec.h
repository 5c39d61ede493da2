#pragma once
// A tokenizer as a file describes it: what a loader fills in and `Tokenizer` checks and runs.
//
// Text goes through stages, in this order: added tokens are found as they are written; what lies between them is
// normalised; cut into words; each word becomes pieces by the model; and the template puts tokens before and behind.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regard {

// How the pieces of SentencePiece write a space: U+2581, the lower one eighth block.
inline constexpr std::string_view kSpaceMark = "\u2581";

// What a piece is; the numbers are GGUF's (`tokenizer.ggml.token_type`).
enum class TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// Rewrites a text before it is cut.
struct NormalizerStep {
  enum class Kind {
    nfc,
    nfd,
    nfkc,
    nfkd,
    lowercase,
    strip_marks,           // takes away the categories Mn, Mc, Me
    strip_accents,         // BERT's: NFD, then without Mn
    clean,                 // BERT's: without control characters, all white space a space
    space_ideographs,      // BERT's: a space before and behind each CJK ideograph
    clean_nmt,             // the `nmt` rules of SentencePiece as Hugging Face has them
    replace,               // `pattern` by `content`
    prepend,               // `content` before a text that is not empty
    strip,                 // white space at the `left` and the `right` end
    squeeze,               // runs of spaces to one, none at the ends (SentencePiece's remove_extra_whitespaces)
    charsmap,              // `content` is a precompiled map of SentencePiece: the longest entry that fits
    charsmap_by_grapheme,  // the same map as Hugging Face applies it: to whole short graphemes, else to characters
  };
  Kind kind;
  std::string pattern = {}, content = {};
  bool expression = false;  // `pattern` is a regular expression
  bool left = true, right = true;
};

// Cuts words into shorter ones; some steps rewrite as well.
struct CutStep {
  enum class Kind {
    split,         // at matches of `pattern`
    prefix_space,  // a space before a word that does not begin with one
    metaspace,     // spaces become `content`, which `prefix` may also put in front; cut before each where `cuts`
    words,         // letters, marks, digits and _ together, other signs together; white space is dropped
    white_space,   // cut at white space, which is dropped
    bert,          // white space is dropped, each punctuation sign is a word
    digits,        // numbers are words: together, or `each` digit
    punctuation,   // at punctuation signs
  };
  // What becomes of a match.
  enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };
  enum class Prefix { always, first, never };  // first: only at the beginning of the whole text
  Kind kind;
  std::string pattern = {};  // split
  bool expression = false;   // split: `pattern` is a regular expression, not a string
  bool invert = false;       // split: what the pattern does not match are the matches
  Behaviour behaviour = Behaviour::isolated;
  std::string content = {};
  Prefix prefix = Prefix::never;
  bool cuts = true, each = false;
};

// A token that is read from a text as it is written.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = false;      // stands for no text of its own; EncodeOptions::parse_special says whether it is read
  bool normalized = false;   // looked for in the normalised text, normalised itself
  bool single_word = false;  // only where no letter, digit, mark or _ touches it
  bool strip_left = false, strip_right = false;  // takes white space beside it along
  bool at_start = false;                         // only where the text begins
};

// How pieces are written, for reading them back. (A piece of the type `byte` is that byte in any case.)
struct Spelling {
  bool byte_level = false;  // in GPT-2's printable letters
  bool word_marks = false;  // `Stages::continuing` marks pieces that go on in a word; others begin one
  std::string space;        // stands for a space
};

// What a file says about the stages, where it spells them out.
struct Stages {
  std::vector<NormalizerStep> normalizers;
  std::vector<CutStep> cuts;
  std::optional<std::vector<AddedToken>> added;  // else: from the types of the pieces
  // The model's own rules; which apply depends on the kind.
  std::optional<std::int32_t> unknown;  // id of what no piece fits; without one that is an error
  bool whole_words = false;             // BPE: a word that is a piece is taken without merging
  bool byte_fallback = false;           // bpe, unigram: a character that is no piece is written as its bytes' pieces
  bool fuse_unknown = false;            // BPE: unknown characters side by side are one unknown token
  std::string continuing;               // bpe, wordpiece: what pieces that go on in a word are written with ("##")
  std::string word_end;                 // bpe: what the last piece of a word is written with ("</w>")
  int longest_word = 100;               // wordpiece: characters; a longer word is unknown
  std::vector<std::int32_t> prefix, suffix;  // ids put before and behind every text, inside of BOS and EOS
  Spelling spelling;
};

// Two pieces that merge into a third, by their ids.
struct PieceMerge {
  std::int32_t left, right, merged;
};

// A piece that the model knows but the vocabulary has no place for: it is read as `id`.
struct AliasPiece {
  std::string piece;
  float score;
  std::int32_t id;
};

// `Tokenizer`'s constructor checks all of it; a loader only copies.
struct TokenizerSpec {
  enum class Kind {
    byte_level_bpe,     // GPT-2 and its heirs: every byte is a letter of the alphabet, merges are ranked by `merges`
    sentencepiece_bpe,  // Llama, Gemma: characters are merged by `scores`, what is left falls back to byte pieces
    bpe,                // characters are merged by `merges`
    unigram,            // the pieces whose `scores` have the largest sum (SentencePiece, T5)
    wordpiece,          // the longest piece that fits, again and again (BERT)
  };

  Kind kind = Kind::byte_level_bpe;
  std::string pre;                  // byte_level_bpe: the stages by the name that GGUF has for them ("smollm", "qwen2")
  std::optional<Stages> stages;     // else: what `kind` and `pre` mean
  std::vector<std::string> pieces;  // [V] as stored: byte-level pieces in GPT-2's printable letters, spaces as U+2581
  std::vector<float> scores;        // [V] sentencepiece_bpe, unigram; may be empty otherwise
  std::vector<double> exact_scores;  // [V] unigram, instead of `scores`: sums are of double precision then
  std::vector<TokenType> types;      // [V], or empty: all normal
  std::vector<std::string> merges;   // BPE by merges: "left right", the strongest first
  std::vector<PieceMerge> ranked;    // the same by ids, instead of `merges`: a piece may hold a space then
  std::vector<AliasPiece> aliases;   // unigram
  std::optional<std::int32_t> bos, eos, unknown, padding, mask, separator, classification;  // ids
  std::vector<std::int32_t> ends;  // ids that end a generated text, besides `eos`
  // Without stages->added, ascending: tokens that take white space behind them along; that are read where a text
  // begins alone.
  std::vector<std::int32_t> strip_right, at_start;
  bool add_bos = false, add_eos = false;  // put round every text
  bool add_space_prefix = false;  // sentencepiece_bpe without stages: a text is read as if a space stood before it
  std::string chat_template;      // as stored; kept for whoever formats a conversation, never run here
  // What it may write by name, as {"bos_token", "<s>"}: those that the file names.
  std::vector<std::pair<std::string, std::string>> template_tokens;
};

}  // namespace regard
