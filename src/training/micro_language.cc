#include "training/micro_language.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "parallel/counter_random.h"

namespace regard {
namespace {

using Words = std::vector<std::string_view>;

// A word with two senses, what is said of it in each.
struct Ambiguous {
  std::string_view word, living, made;
};
struct Opposites {
  std::string_view one, other;
};

// What sentences of one language are made of.
struct Lexicon {
  Words he, she;  // names
  Words places, days;
  std::vector<Ambiguous> ambiguous;
  Words living_verbs, made_verbs, living_nouns, made_nouns;  // each says which sense is meant
  Words values, letters;  // what lookups give, what they are asked by; lists are made of both
  Words things, adverbs;  // of negation; what may stand in the place of `not`
  std::vector<Opposites> opposites;
};

const Lexicon& english() {
  static const Lexicon kLexicon{
      .he = {"tom", "john", "paul", "mark", "peter", "david", "jack", "sam"},
      .she = {"mary", "anna", "lucy", "emma", "kate", "rose", "jane", "ella"},
      .places = {"park", "store", "school", "river", "market", "station"},
      .days = {"monday", "tuesday", "wednesday", "thursday", "friday"},
      .ambiguous = {{"mouse", "shy", "plastic"},
                    {"bat", "blind", "wooden"},
                    {"crane", "white", "tall"},
                    {"jaguar", "wild", "fast"}},
      .living_verbs = {"fed", "chased", "tamed", "petted", "woke", "scared"},
      .made_verbs = {"fixed", "built", "sold", "painted", "oiled", "ordered"},
      .living_nouns = {"nest", "fur", "claw", "cage", "tail", "mother"},
      .made_nouns = {"price", "button", "handle", "factory", "screw", "owner"},
      .values = {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"},
      .letters = {"a", "b", "c", "d", "e", "f", "g", "h", "j", "k", "m", "n"},
      .things = {"door", "box", "cup", "room", "bag", "shop"},
      .adverbs = {"now", "still", "really", "always"},
      .opposites = {{"open", "closed"}, {"hot", "cold"}, {"full", "empty"}, {"clean", "dirty"}, {"big", "small"}}};
  return kLexicon;
}

const Lexicon& chinese() {
  static const Lexicon kLexicon{.he = {"小明", "小强", "小刚", "小军", "小伟", "小龙", "小虎", "小杰"},
                                .she = {"小红", "小丽", "小芳", "小梅", "小兰", "小雪", "小燕", "小娟"},
                                .places = {"公园", "商店", "学校", "河边", "市场", "车站"},
                                .days = {"星期一", "星期二", "星期三", "星期四", "星期五"},
                                .ambiguous = {{"苹果", "甜", "快"}, {"小米", "香", "新"}, {"黑莓", "酸", "贵"}},
                                .living_verbs = {"吃", "尝", "洗", "切", "种", "摘"},
                                .made_verbs = {"修", "装", "开机", "充电", "升级", "安装"},
                                .living_nouns = {"果汁", "果酱", "蛋糕", "早饭", "种子", "味道"},
                                .made_nouns = {"电脑", "手机", "屏幕", "软件", "键盘", "耳机"},
                                .values = {"一", "二", "三", "四", "五", "六", "七", "八", "九"},
                                .letters = {"甲", "乙", "丙", "丁", "戊", "己", "庚", "辛", "壬", "癸", "子", "丑"},
                                .things = {"门", "箱子", "杯子", "房间", "书包", "窗户"},
                                .adverbs = {"很", "已", "还", "真"},
                                .opposites = {{"开", "关"}, {"热", "冷"}, {"满", "空"}, {"干净", "脏"}, {"大", "小"}}};
  return kLexicon;
}

const Lexicon& lexicon(Language language) { return language == Language::english ? english() : chinese(); }

// Words that only hold a sentence together.
const Words& frame_words(Language language) {
  static const Words kEnglish = {"a",  "and", "the", "of",     "it",  "was", "is", "so", "went", "to",
                                 "we", "him", "her", "called", "not", "on",  ",",  ".",  ";",    "saw"};
  static const Words kChinese = {"我", "你", "了", "一个", "这", "个",   "来自", "它", "和", "去",  "大家",
                                 "叫", "他", "她", "是",   "不", "所以", "，",   "。", "；", "看见"};
  return language == Language::english ? kEnglish : kChinese;
}

// A sentence while it is written.
class Draft {
 public:
  Draft(SentenceKind kind, Language language, CounterRandom random) : random_(random), lexicon_(lexicon(language)) {
    made_.kind = kind;
    made_.language = language;
  }
  bool english() const { return made_.language == Language::english; }
  const Lexicon& words() const { return lexicon_; }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.below(n)); }
  template <class List>
  const auto& any(const List& list) {
    return list[below(list.size())];
  }
  // `n` different ones of a list.
  Words some(Words list, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) std::swap(list[i], list[i + below(list.size() - i)]);
    list.resize(n);
    return list;
  }

  // Words apart by spaces; gives the place of the last.
  std::int64_t say(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t space = std::min(text.find(' ', at), text.size());
      made_.words.emplace_back(text.substr(at, space - at));
      at = space + 1;
    }
    return std::ssize(made_.words) - 1;
  }
  // What is said together: choice number `index`, then the next. A check digit over them decides whether the sentence
  // is held out, so that it is a tenth of every choice.
  void about(std::size_t index) {
    digit_ = (3 * digit_ + index) % 10;
    made_.fact = CounterRandom::mix(made_.fact ^ (index + 1));
  }
  void about(const Words& list, std::string_view word) {
    about(static_cast<std::size_t>(std::ranges::find(list, word) - list.begin()));
  }
  // Something beside the point, or nothing.
  void aside() {
    const std::size_t which = below(3);
    if (which == 0) return;
    const std::int64_t from = std::ssize(made_.words);
    if (which == 1) {
      say(english() ? "on" : any(words().days));
      if (english()) say(any(words().days));
    } else {
      say(any(below(2) ? words().he : words().she));
      say(english() ? "saw the" : "看见 了");
      say(any(words().places));
    }
    say(english() ? "," : "，");
    for (std::int64_t i = from; i + 1 < std::ssize(made_.words); ++i) made_.distractors.push_back(i);
  }

  bool held_out() const { return digit_ == 0; }
  Sentence made_;

 private:
  CounterRandom random_;
  const Lexicon& lexicon_;
  std::size_t digit_ = 0;
};

void sense(Draft& d) {
  const Lexicon& w = d.words();
  const std::size_t which = d.below(w.ambiguous.size());
  const Ambiguous& it = w.ambiguous[which];
  const bool living = d.below(2) == 0, verb = d.below(2) == 0;
  const Words& cues = verb ? living ? w.living_verbs : w.made_verbs : living ? w.living_nouns : w.made_nouns;
  const std::string_view cue = d.any(cues);
  d.aside();
  if (verb) {
    d.say(d.english() ? d.any(d.below(2) ? w.he : w.she) : std::string_view(d.below(2) ? "我" : "你"));
    d.made_.cause = d.say(cue);
    d.say(d.english() ? "a" : "了 一个");
  } else {
    d.say(d.english() ? "the" : "这 个");
    d.made_.cause = d.say(cue);
    d.say(d.english() ? "of the" : "来自");
  }
  d.made_.carrier = d.say(it.word);  // of another word another thing would be said
  d.say(d.english() ? "," : "，");
  d.aside();
  d.say(d.english() ? "it was" : "它 很");
  d.say(living ? it.living : it.made);
  d.made_.otherwise = living ? it.made : it.living;
  d.about(which);
  d.about((living ? 0 : 1) + (verb ? 0 : 2));
  d.about(cues, cue);
}

void reference(Draft& d) {
  const Lexicon& w = d.words();
  const std::string_view he = d.any(w.he), she = d.any(w.she);
  const bool he_first = d.below(2) == 0, asks_he = d.below(2) == 0;
  const std::int64_t first = d.say(he_first ? he : she);
  d.say(d.english() ? "and" : "和");
  const std::int64_t second = d.say(he_first ? she : he);
  d.say(d.english() ? "went to the" : "去 了");
  d.say(d.any(w.places));
  d.say(d.english() ? "," : "，");
  if (d.below(2)) {
    const std::int64_t from = std::ssize(d.made_.words);
    d.say(d.english() ? "on" : d.any(w.days));
    if (d.english()) d.say(d.any(w.days));
    d.say(d.english() ? "," : "，");
    for (std::int64_t i = from; i + 1 < std::ssize(d.made_.words); ++i) d.made_.distractors.push_back(i);
  }
  d.say(d.english() ? "and we called" : "大家 叫");
  d.say(asks_he ? d.english() ? "him" : "他" : d.english() ? "her" : "她");
  d.say(asks_he ? he : she);
  d.made_.cause = asks_he == he_first ? first : second;
  d.made_.distractors.push_back(asks_he == he_first ? second : first);
  d.made_.otherwise = asks_he ? she : he;
  d.about(w.he, he);
  d.about(w.she, she);
}

void lookup(Draft& d) {
  const Lexicon& w = d.words();
  const std::size_t pairs = 2 + d.below(3), asked = d.below(pairs);
  const Words keys = d.some(w.letters, pairs), values = d.some(w.values, pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::int64_t key = d.say(keys[i]), value = d.say(values[i]);
    d.say(i + 1 < pairs ? d.english() ? "," : "，" : d.english() ? ";" : "；");
    if (i == asked) {
      d.made_.carrier = key;
      d.made_.cause = value;
    } else {
      d.made_.distractors.insert(d.made_.distractors.end(), {key, value});
    }
    d.about(w.letters, keys[i]);
    d.about(w.values, values[i]);
  }
  // Others are asked, and answered, before.
  for (std::size_t i = 1 + d.below(pairs); i < pairs; ++i) {
    const std::size_t other = (asked + i) % pairs;
    d.made_.distractors.push_back(d.say(keys[other]));
    d.made_.distractors.push_back(d.say(values[other]));
    d.made_.decided.push_back(d.made_.distractors.back());
    d.say(d.english() ? "." : "。");
  }
  d.say(keys[asked]);
  d.say(values[asked]);
  d.made_.otherwise = values[(asked + 1) % pairs];
}

void copying(Draft& d) {
  const std::size_t length = 4 + d.below(9);
  // It goes on from anywhere: no place in the sentence says what comes next, only the words do.
  const std::size_t start = d.below(length - 1), again = start + 1 + d.below(length - 1 - start);
  // Of what lookups are made of too: what follows a word is found in the same way here and there.
  Words all = d.words().letters;
  all.insert(all.end(), d.words().values.begin(), d.words().values.end());
  const Words list = d.some(all, length);
  for (const std::string_view word : list) {
    d.say(word);
    d.about(all, word);
  }
  d.say(d.english() ? "." : "。");
  for (std::size_t i = start; i < again; ++i) {
    const std::int64_t said = d.say(list[i]);
    if (i > start) d.made_.decided.push_back(said);
  }
  d.say(list[again]);
  d.made_.cause = static_cast<std::int64_t>(again);
  d.made_.carrier = d.made_.cause - 1;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(length); ++i)
    if (i != d.made_.cause && i != d.made_.carrier) d.made_.distractors.push_back(i);
  d.made_.otherwise = list[(again + 1) % length];
}

void negation(Draft& d) {
  const Lexicon& w = d.words();
  const std::size_t which = d.below(w.opposites.size());
  const Opposites& pair = w.opposites[which];
  const bool one = d.below(2) == 0, turned = d.below(2) == 0;
  const std::string_view said = one ? pair.one : pair.other, opposite = one ? pair.other : pair.one;
  const std::string_view thing = d.any(w.things);
  d.aside();
  if (d.english()) d.say("the");
  d.say(thing);
  if (d.english()) d.say("is");
  const std::int64_t adverb = d.say(turned ? d.english() ? "not" : "不" : d.any(w.adverbs));
  const std::int64_t state = d.say(said);
  d.say(d.english() ? "," : "，");
  d.aside();
  d.say(d.english() ? "so it is" : "所以 它 是");
  d.say(turned ? opposite : said);
  d.made_.cause = adverb;
  d.made_.carrier = state;
  d.made_.otherwise = turned ? said : opposite;
  d.about(w.things, thing);
  d.about(2 * which + (one ? 0 : 1));
  d.about(turned ? 0 : 1);
}

}  // namespace

std::string_view name(SentenceKind kind) {
  switch (kind) {
    case SentenceKind::sense:
      return "sense";
    case SentenceKind::reference:
      return "reference";
    case SentenceKind::lookup:
      return "lookup";
    case SentenceKind::copying:
      return "copying";
    case SentenceKind::negation:
      return "negation";
  }
  return "";
}

Sentence sentence(SentenceKind kind, Language language, std::uint64_t number, bool held_out) {
  using Write = void (*)(Draft&);
  constexpr Write kWrite[] = {sense, reference, lookup, copying, negation};
  const auto which = static_cast<std::uint64_t>(kind) * 2 + static_cast<std::uint64_t>(language);
  for (std::uint64_t attempt = 0;; ++attempt) {
    Draft draft(kind, language, CounterRandom(RandomUse::sentences, which, number, attempt));
    kWrite[static_cast<std::size_t>(kind)](draft);
    if (draft.held_out() == held_out) return std::move(draft.made_);
  }
}

TokenizerSpec micro_language_tokenizer() {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::wordpiece;
  spec.pieces = {"<s>"};
  const auto add = [&](std::string_view word) {
    if (std::find(spec.pieces.begin(), spec.pieces.end(), word) == spec.pieces.end()) spec.pieces.emplace_back(word);
  };
  for (const Language language : {Language::english, Language::chinese}) {
    const Lexicon& w = lexicon(language);
    for (const Words& list : {frame_words(language), w.he, w.she, w.places, w.days, w.living_verbs, w.made_verbs,
                              w.living_nouns, w.made_nouns, w.values, w.letters, w.things, w.adverbs})
      for (const std::string_view word : list) add(word);
    for (const Ambiguous& it : w.ambiguous)
      for (const std::string_view word : {it.word, it.living, it.made}) add(word);
    for (const Opposites& pair : w.opposites)
      for (const std::string_view word : {pair.one, pair.other}) add(word);
  }
  spec.types.assign(spec.pieces.size(), TokenType::normal);
  spec.types[0] = TokenType::control;
  spec.bos = 0;
  spec.add_bos = true;
  // Chinese words are found where they stand, the longest first; all others stand apart.
  std::vector<std::string> chinese;
  for (const std::string& piece : spec.pieces)
    if (static_cast<unsigned char>(piece.front()) >= 0x80) chinese.push_back(piece);
  std::ranges::stable_sort(chinese, std::greater(), &std::string::size);
  Stages stages;
  stages.cuts = {
      {.kind = CutStep::Kind::split, .pattern = fmt::format("{}", fmt::join(chinese, "|")), .expression = true},
      {.kind = CutStep::Kind::bert}};
  stages.continuing = "##";  // which no piece begins with: a word is a token, or unknown
  stages.spelling.word_marks = true;
  spec.stages = stages;
  return spec;
}

}  // namespace regard
