#pragma once
// A small language made for teaching and for proving answers: every sentence, English or Chinese, carries its planted
// cause, the earlier word that its last word depends on. models/README.md shows some.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/language.h"
#include "text/tokenizer_spec.h"

namespace regard {

enum class SentenceKind {
  sense,      // an ambiguous word means what another word says: "tom fed a mouse , it was" -> "shy"
  reference,  // a pronoun means a name: "mary and tom went to the park , and we called him" -> "tom"
  lookup,     // a value of a key: "k three , d seven ; d seven . k" -> "three"
  copying,    // a list goes on as it went before: "k three f a . three f" -> "a"
  negation,   // a word turns another round, or not: "the door is not open , so it is" -> "closed"
};
inline constexpr SentenceKind kSentenceKinds[] = {SentenceKind::sense, SentenceKind::reference, SentenceKind::lookup,
                                                  SentenceKind::copying, SentenceKind::negation};
std::string_view name(SentenceKind kind);

// Words are tokens. The answer is the last word; the words before it are the prompt.
struct Sentence {
  SentenceKind kind = SentenceKind::sense;
  Language language = Language::english;
  std::vector<std::string> words;
  std::vector<std::int64_t> decided;      // words, beside the answer, that follow from those before them
  std::int64_t cause = 0;                 // index of the word that decides the answer
  std::int64_t carrier = -1;              // one without which the cause does not say it (a key, the word before), or -1
  std::string otherwise;                  // what would be right if the cause were another
  std::vector<std::int64_t> distractors;  // words that stand in the way and decide nothing
  std::uint64_t fact = 0;                 // of what is said: equal where the same words are said together
};

// Sentence `number` of an endless list; the same everywhere. About a tenth of what can be said (which words together,
// not how they are put) is held out: `held_out` chooses from it, and nothing else does.
Sentence sentence(SentenceKind kind, Language language, std::uint64_t number, bool held_out);

// The tokenizer: <s>, then every word of both languages. Words stand apart; Chinese may also be written without spaces.
TokenizerSpec micro_language_tokenizer();

}  // namespace regard
