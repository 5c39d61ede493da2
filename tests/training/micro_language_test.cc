#include "training/micro_language.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "support/errors.h"
#include "training/default_recipe.h"

namespace regard {
namespace {

std::string joined(const Sentence& s) {
  std::string text;
  for (const std::string& word : s.words) text += word + " ";
  return text;
}

template <class Body>
void for_each_list(Body&& body) {
  for (const SentenceKind kind : kSentenceKinds)
    for (const Language language : {Language::english, Language::chinese}) {
      SCOPED_TRACE(std::string(name(kind)) + (language == Language::english ? " en" : " zh"));
      body(kind, language);
    }
}

TEST(MicroLanguage, EveryWordIsOneToken) {
  const Tokenizer tokenizer(micro_language_tokenizer());
  for_each_list([&](SentenceKind kind, Language language) {
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Sentence s = sentence(kind, language, i, i % 2 == 0);
      const Question q = question(tokenizer, s);  // throws unless it is so
      EXPECT_EQ(q.prompt.size(), s.words.size());
      EXPECT_NE(q.answer, q.otherwise) << joined(s);
      std::vector<std::int32_t> ids = q.prompt;
      EXPECT_EQ(" " + tokenizer.decode(std::span(ids).subspan(1)) + " " + s.words.back() + " ", " " + joined(s));
    }
  });
}

TEST(MicroLanguage, OtherWordsAreRefusedByName) {
  const Tokenizer tokenizer(micro_language_tokenizer());
  testing::expect_error(ErrorCode::bad_input, {"\"shcool\" at byte 12"},
                        [&] { tokenizer.encode("tom saw the shcool"); });
  testing::expect_error(ErrorCode::bad_input, {"\"made\" at byte 2"}, [&] { tokenizer.encode("a made bed"); });
  testing::expect_error(ErrorCode::bad_input, {"\"tomtom\""}, [&] { tokenizer.encode("tomtom"); });
  testing::expect_error(ErrorCode::bad_input, {"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\""},
                        [&] { tokenizer.encode(std::string(2'000'000, 'x')); });
  testing::expect_error(ErrorCode::bad_input, {"\"北京\" at byte 15"}, [&] { tokenizer.encode("小明 去 了 北京"); });
}

TEST(MicroLanguage, TheCauseIsWhereItIsSaidToBe) {
  for_each_list([&](SentenceKind kind, Language language) {
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Sentence s = sentence(kind, language, i, false);
      SCOPED_TRACE(joined(s));
      const std::int64_t last = std::ssize(s.words) - 1;
      ASSERT_TRUE(s.cause >= 0 && s.cause < last - 1);
      ASSERT_TRUE(s.carrier >= -1 && s.carrier < last - 1 && s.carrier != s.cause);
      const std::string& answer = s.words.back();
      const std::string& cause = s.words[s.cause];
      switch (kind) {
        case SentenceKind::reference:
        case SentenceKind::copying:
          EXPECT_EQ(cause, answer);
          EXPECT_EQ(std::count(s.words.begin(), s.words.end(), answer), 2);
          break;
        case SentenceKind::lookup:
          EXPECT_EQ(cause, answer);
          EXPECT_EQ(s.words[s.carrier], s.words[last - 1]);
          EXPECT_EQ(s.cause, s.carrier + 1);
          EXPECT_EQ(std::count(s.words.begin(), s.words.end(), answer), 2) << "nothing else gives it away";
          break;
        case SentenceKind::negation:
          EXPECT_EQ(s.carrier, s.cause + 1);
          EXPECT_EQ(s.words[s.carrier], cause == "not" || cause == "不" ? s.otherwise : answer);
          break;
        case SentenceKind::sense:
          EXPECT_EQ(std::count(s.words.begin(), s.words.end(), answer), 1);
          break;
      }
      for (const std::int64_t d : s.distractors) {
        EXPECT_TRUE(d >= 0 && d < last);
        EXPECT_NE(d, s.cause);
        EXPECT_NE(d, s.carrier);
      }
      for (const std::int64_t d : s.decided) EXPECT_TRUE(d > 0 && d < last);
    }
  });
}

// Of the kinds with few facts, nearly a tenth of them is held out, and no kind asks always for the same answer.
TEST(MicroLanguage, ATenthIsHeldOut) {
  for_each_list([&](SentenceKind kind, Language language) {
    std::set<std::uint64_t> learnt, held_out;
    std::set<std::string> answers;
    for (std::uint64_t i = 0; i < 4000; ++i) {
      learnt.insert(sentence(kind, language, i, false).fact);
      const Sentence asked = sentence(kind, language, i, true);
      held_out.insert(asked.fact);
      answers.insert(asked.words.back());
    }
    for (const std::uint64_t fact : held_out) EXPECT_FALSE(learnt.contains(fact));
    EXPECT_GE(answers.size(), kind == SentenceKind::sense ? 6u : 9u);
    // As many as there can be (models/README.md says how many of them are held out).
    using Counts = std::pair<std::size_t, std::size_t>;
    const std::map<SentenceKind, Counts> expected = {
        {SentenceKind::sense, language == Language::english ? Counts{11, 4 * 24} : Counts{8, 3 * 24}},
        {SentenceKind::reference, {6, 8 * 8}},
        {SentenceKind::negation, {12, 6 * 10 * 2}}};
    if (const auto counts = expected.find(kind); counts != expected.end()) {
      EXPECT_EQ(Counts(held_out.size(), held_out.size() + learnt.size()), counts->second);
    }
  });
}

// Where a word is hidden says nothing of the sentence, and it is never <s> or the last word.
TEST(DefaultRecipe, HidesOneWordInFourSentences) {
  const Tokenizer tokenizer(micro_language_tokenizer());
  const DefaultRecipe recipe;
  std::int64_t sentences = 0, hidden = 0;
  std::map<std::pair<std::int32_t, std::size_t>, std::array<double, 2>> by_sense;  // [answer, length]: odd and even
  for (std::int64_t step = 0; step < 400; ++step) {
    const Batch batch = default_batch(recipe, tokenizer, step);
    for (std::size_t begin = 0; begin < batch.rows.size();) {
      std::size_t end = begin + 1;
      while (end < batch.rows.size() && batch.rows[end].sequence == batch.rows[begin].sequence) ++end;
      std::size_t place = 0, count = 0;
      for (std::size_t r = begin; r < end; ++r)
        if (!batch.visible[r]) place = r - begin, ++count;
      ASSERT_LE(count, 1u);
      ++sentences;
      if (count == 1) {
        ++hidden;
        ASSERT_TRUE(place > 0 && place + 1 < end - begin);
        if ((end - begin) % 2 == 0) ++by_sense[{batch.targets[end - 1], end - begin}][place % 2];  // places 1..n - 2
      }
      begin = end;
    }
  }
  const double n = static_cast<double>(sentences);
  EXPECT_NEAR(static_cast<double>(hidden), n / 4, 5 * std::sqrt(n * 0.25 * 0.75));
  for (const auto& [what, places] : by_sense) {
    const double all = places[0] + places[1];
    EXPECT_NEAR(places[0], all / 2, 5 * std::sqrt(all) / 2) << what.first;
  }
  DefaultRecipe none;
  none.hidden_in = 0;
  for (const std::uint8_t visible : default_batch(none, tokenizer, 0).visible) EXPECT_EQ(visible, 1);
  EXPECT_NE(none.text(), recipe.text());
}

TEST(MicroLanguage, WhatIsHeldOutIsNeverLearnt) {
  for_each_list([&](SentenceKind kind, Language language) {
    std::set<std::string> learnt;
    for (std::uint64_t i = 0; i < 2000; ++i) learnt.insert(joined(sentence(kind, language, i, false)));
    for (std::uint64_t i = 0; i < 500; ++i) {
      const std::string text = joined(sentence(kind, language, i, true));
      EXPECT_FALSE(learnt.contains(text)) << text;
    }
    EXPECT_GT(learnt.size(), 400u);
  });
}

TEST(MicroLanguage, IsTheSameEverywhere) {
  EXPECT_EQ(joined(sentence(SentenceKind::reference, Language::english, 7, true)),
            joined(sentence(SentenceKind::reference, Language::english, 7, true)));
  std::uint64_t sum = 0;
  for_each_list([&](SentenceKind kind, Language language) {
    for (std::uint64_t i = 0; i < 50; ++i)
      for (const char c : joined(sentence(kind, language, i, false))) sum = sum * 31 + static_cast<unsigned char>(c);
  });
  EXPECT_EQ(sum, 12967431968814154207u);
}

}  // namespace
}  // namespace regard
