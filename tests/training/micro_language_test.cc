#include "training/micro_language.h"

#include <gtest/gtest.h>

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
          if (cause == "not" || cause == "不")
            EXPECT_EQ(s.words[s.carrier], s.otherwise);
          else
            EXPECT_EQ(cause, answer);
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
  EXPECT_EQ(sum, 13637697141748012576u);
}

}  // namespace
}  // namespace regard
