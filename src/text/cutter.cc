#include "text/cutter.h"

#include <functional>
#include <optional>
#include <string>

#include "text/char_sets.h"
#include "text/expression.h"
#include "text/pretokenizer.h"
#include "text/utf8.h"

namespace regard {

class Cutter::Step {
 public:
  virtual ~Step() = default;
  virtual void apply(Draft& draft) const = 0;
};

namespace {

using Behaviour = CutStep::Behaviour;

// A stretch of a word, and whether it is a match.
struct Stretch {
  std::uint32_t begin, end;
  bool matches;
};

// What a behaviour makes of the stretches that a word consists of (tokenizers, normalizer.rs, split).
void put_words(std::vector<Stretch>& stretches, Behaviour behaviour, std::vector<Word>& out) {
  // Joins each stretch to the one before it where `joins(stretch, before)`.
  const auto join = [&](auto begin, auto end, const auto& joins) {
    bool before = false, first = true;
    std::size_t last = 0;
    std::vector<Stretch> joined;
    for (auto stretch = begin; stretch != end; ++stretch) {
      if (!first && joins(stretch->matches, before)) {
        joined[last].begin = std::min(joined[last].begin, stretch->begin);
        joined[last].end = std::max(joined[last].end, stretch->end);
      } else {
        joined.push_back(*stretch);
        last = joined.size() - 1;
      }
      before = stretch->matches;
      first = false;
    }
    return joined;
  };
  const auto follows = [](bool matches, bool before) { return matches && !before; };
  switch (behaviour) {
    case Behaviour::removed:
      std::erase_if(stretches, [](const Stretch& stretch) { return stretch.matches; });
      break;
    case Behaviour::isolated:
      break;
    case Behaviour::contiguous:
      stretches = join(stretches.begin(), stretches.end(), [](bool matches, bool before) { return matches == before; });
      break;
    case Behaviour::merged_with_previous:
      stretches = join(stretches.begin(), stretches.end(), follows);
      break;
    case Behaviour::merged_with_next:
      stretches = join(stretches.rbegin(), stretches.rend(), follows);
      std::reverse(stretches.begin(), stretches.end());
      break;
  }
  for (const Stretch& stretch : stretches)
    if (stretch.end > stretch.begin) out.push_back({stretch.begin, stretch.end});
}

// A step that rewrites nothing: `find(text, put)` calls `put(begin, end)` for the matches in order.
class MatchStep final : public Cutter::Step {
 public:
  using Put = std::function<void(std::size_t, std::size_t)>;
  using Find = std::function<void(std::string_view, const Put&)>;
  MatchStep(Find find, Behaviour behaviour, bool invert = false)
      : find_(std::move(find)), behaviour_(behaviour), invert_(invert) {}

  void apply(Draft& draft) const override {
    std::vector<Word> words;
    words.reserve(draft.words.size());
    std::vector<Stretch> stretches;
    for (const Word& word : draft.words) {
      if (word.token >= 0) {
        words.push_back(word);
        continue;
      }
      stretches.clear();
      std::uint32_t at = word.begin;
      find_(draft.text().substr(word.begin, word.end - word.begin), [&](std::size_t begin, std::size_t end) {
        const auto from = word.begin + static_cast<std::uint32_t>(begin);
        const auto to = word.begin + static_cast<std::uint32_t>(end);
        if (from > at) stretches.push_back({at, from, invert_});
        stretches.push_back({from, to, !invert_});
        at = to;
      });
      if (word.end > at) stretches.push_back({at, word.end, invert_});
      put_words(stretches, behaviour_, words);
    }
    draft.words = std::move(words);
  }

 private:
  Find find_;
  Behaviour behaviour_;
  bool invert_;
};

// Each character that a set has is a match of its own.
MatchStep::Find each_of(bool (*has)(std::uint32_t)) {
  return [has](std::string_view text, const MatchStep::Put& put) {
    for (std::size_t at = 0; at < text.size();) {
      const Character c = character_at(text, at);
      if (has(c.code)) put(at, at + c.length);
      at += c.length;
    }
  };
}

MatchStep::Find each_string(std::string pattern) {
  return [pattern = std::move(pattern)](std::string_view text, const MatchStep::Put& put) {
    if (pattern.empty()) return;
    for (std::size_t at = 0; (at = text.find(pattern, at)) != std::string_view::npos; at += pattern.size())
      put(at, at + pattern.size());
  };
}

MatchStep::Find each_match(const std::string& pattern) {
  const auto expression = std::make_shared<const Expression>(pattern);
  return [expression](std::string_view text, const MatchStep::Put& put) {
    Expression::Matches matches(*expression, text);
    while (const auto match = matches.next()) put(match->begin, match->end);
  };
}

// \w+|[^\w\s]+
void find_words(std::string_view text, const MatchStep::Put& put) {
  enum class Kind { space, word, sign };
  const auto kind_of = [](std::uint32_t code) {
    return is_white_space(code) ? Kind::space : is_word_character(code) ? Kind::word : Kind::sign;
  };
  std::size_t begin = 0;
  Kind before = Kind::space;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    const Kind kind = kind_of(c.code);
    if (kind != before) {
      if (before != Kind::space) put(begin, at);
      begin = at;
      before = kind;
    }
    at += c.length;
  }
  if (before != Kind::space) put(begin, text.size());
}

// The expression of a well-known model, scanned.
class ScannerStep final : public Cutter::Step {
 public:
  explicit ScannerStep(PreTokenizer rules) : rules_(rules) {}

  void apply(Draft& draft) const override {
    std::vector<Word> words;
    words.reserve(draft.text().size() / 4);
    for (const Word& word : draft.words) {
      if (word.token >= 0) {
        words.push_back(word);
        continue;
      }
      WordScanner scanner(rules_, draft.text().substr(word.begin, word.end - word.begin));
      std::uint32_t at = word.begin;
      for (std::string_view next = scanner.next(); !next.empty(); next = scanner.next()) {
        const std::uint32_t end = at + static_cast<std::uint32_t>(next.size());
        words.push_back({at, end});
        at = end;
      }
    }
    draft.words = std::move(words);
  }

 private:
  PreTokenizer rules_;
};

// Rewrites words: `pattern` (if any) becomes `content`, and `content` may be put in front.
class PrefixStep final : public Cutter::Step {
 public:
  PrefixStep(std::string pattern, std::string content, CutStep::Prefix prefix)
      : pattern_(std::move(pattern)), content_(std::move(content)), prefix_(prefix) {}

  void apply(Draft& draft) const override {
    const std::string_view text = draft.text();
    Changes changes(text);
    std::vector<Word> words;
    words.reserve(draft.words.size());
    std::int64_t grown = 0;  // bytes that the text has grown by so far
    const auto change = [&](std::size_t begin, std::size_t end, std::string_view with) {
      changes.replace(begin, end, with);
      grown += static_cast<std::int64_t>(with.size()) - static_cast<std::int64_t>(end - begin);
    };
    const auto moved = [&](std::uint32_t at) { return static_cast<std::uint32_t>(at + grown); };
    for (const Word& word : draft.words) {
      const std::uint32_t begin = moved(word.begin);
      if (word.token < 0 && word.end > word.begin) {
        const std::string_view own = text.substr(word.begin, word.end - word.begin);
        const bool wanted =
            prefix_ == CutStep::Prefix::always || (prefix_ == CutStep::Prefix::first && draft.opens_whole_text(word));
        const bool has = own.starts_with(content_) || (!pattern_.empty() && own.starts_with(pattern_));
        if (wanted && !has) change(word.begin, word.begin, content_);
        if (!pattern_.empty())
          for (std::size_t at = 0; (at = own.find(pattern_, at)) != std::string_view::npos; at += pattern_.size())
            change(word.begin + at, word.begin + at + pattern_.size(), content_);
      }
      words.push_back({begin, moved(word.end), word.token});
    }
    if (auto rewritten = changes.finish()) {
      draft.rewrite(*std::move(rewritten));
      draft.words = std::move(words);
    }
  }

 private:
  std::string pattern_, content_;
  CutStep::Prefix prefix_;
};

}  // namespace

Cutter::Cutter(const std::vector<CutStep>& steps) {
  using Kind = CutStep::Kind;
  const auto add = [&](MatchStep::Find find, Behaviour behaviour, bool invert = false) {
    steps_.push_back(std::make_unique<MatchStep>(std::move(find), behaviour, invert));
  };
  const auto scanner_of = [](const CutStep& step) -> std::optional<PreTokenizer> {
    const bool plain = step.behaviour == Behaviour::isolated && !step.invert;
    // What the expression leaves over is nothing, so that removing what it does not match removes nothing.
    const bool inverted = step.behaviour == Behaviour::removed && step.invert;
    if (step.kind != Kind::split || !step.expression || !(plain || inverted)) return std::nullopt;
    return pretokenizer_of_expression(step.pattern);
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const CutStep& step = steps[i];
    switch (step.kind) {
      case Kind::split:
        if (const auto rules = scanner_of(step))
          steps_.push_back(std::make_unique<ScannerStep>(*rules));
        else
          add(step.expression ? each_match(step.pattern) : each_string(step.pattern), step.behaviour, step.invert);
        break;
      case Kind::prefix_space:
        steps_.push_back(std::make_unique<PrefixStep>("", " ", CutStep::Prefix::always));
        break;
      case Kind::metaspace:
        steps_.push_back(std::make_unique<PrefixStep>(" ", step.content, step.prefix));
        if (step.cuts) add(each_string(step.content), Behaviour::merged_with_next);
        break;
      case Kind::words:
        add(find_words, Behaviour::removed, true);
        break;
      case Kind::white_space:
        add(each_of(is_white_space), Behaviour::removed);
        break;
      case Kind::bert:
        add(each_of(is_white_space), Behaviour::removed);
        add(each_of(is_punctuation), Behaviour::isolated);
        break;
      case Kind::digits:
        // Single digits before GPT-2's rules are one scanner (SmolLM, StarCoder).
        if (step.each && i + 1 < steps.size() && scanner_of(steps[i + 1]) == PreTokenizer::gpt2) {
          steps_.push_back(std::make_unique<ScannerStep>(PreTokenizer::smollm));
          ++i;
        } else {
          add(each_of(is_number), step.each ? Behaviour::isolated : Behaviour::contiguous);
        }
        break;
      case Kind::punctuation:
        add(each_of(is_punctuation), step.behaviour);
        break;
    }
  }
}

Cutter::~Cutter() = default;

void Cutter::apply(Draft& draft) const {
  for (const auto& step : steps_) step->apply(draft);
}

}  // namespace regard
