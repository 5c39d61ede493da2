#pragma once
// Sets of characters that tokenizers' rules speak of, by utf8proc's tables (Unicode 15.0 in utf8proc 2.8).
//
// Hugging Face's rules for BERT rest on tables of Unicode 8.0: what later versions added as punctuation or as marks is
// none to them. Those sets say "as Hugging Face has it". (The lists were found by asking tokenizers 0.23.3 about every
// code point.)

#include <cstdint>

namespace regard {

// Each takes any code point or kInvalidByte, which is in none of them.
bool is_white_space(std::uint32_t code);     // the property White_Space
bool is_word_character(std::uint32_t code);  // \w: letters, marks, digits, connectors, joiners
bool is_number(std::uint32_t code);          // \p{N}
bool is_mark(std::uint32_t code);            // \p{M}
bool is_punctuation(std::uint32_t code);     // ASCII signs and \p{P}, as Hugging Face has it
bool is_accent(std::uint32_t code);          // \p{Mn}, as Hugging Face's BERT rules have it
bool is_bert_control(std::uint32_t code);    // what BERT's rules take away: Cc but for \t \n \r, Cf, Co, U+FFFD
bool is_cjk_ideograph(std::uint32_t code);   // as BERT's rules have it

// The lower case of a character by itself; U+0130 is the only one that becomes two (i, U+0307) and gives U+0069 here.
std::uint32_t lower_case(std::uint32_t code);

}  // namespace regard
