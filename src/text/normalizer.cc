#include "text/normalizer.h"

#include <functional>
#include <optional>
#include <string>

#include "text/char_sets.h"
#include "text/charsmap.h"
#include "text/expression.h"
#include "text/normal_form.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"

namespace regard {
namespace {

using Result = std::optional<Rewritten>;

// Each character for which `rule(code)` gives a text becomes that text.
template <class Rule>
Result each_character(std::string_view text, const Rule& rule) {
  Changes changes(text);
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (const std::optional<std::string_view> with = rule(c.code)) changes.replace(at, at + c.length, *with);
    at += c.length;
  }
  return changes.finish();
}

Result lowered(std::string_view text) {
  std::string room;
  return each_character(text, [&](std::uint32_t code) -> std::optional<std::string_view> {
    const std::uint32_t lower = lower_case(code);
    if (lower == code) return std::nullopt;
    room.clear();
    append_utf8(room, lower);
    if (code == 0x130) room += "\u0307";
    return room;
  });
}

Result without(std::string_view text, bool (*is_dropped)(std::uint32_t)) {
  return each_character(text, [&](std::uint32_t code) -> std::optional<std::string_view> {
    if (is_dropped(code)) return "";
    return std::nullopt;
  });
}

Result cleaned(std::string_view text) {
  return each_character(text, [](std::uint32_t code) -> std::optional<std::string_view> {
    if (is_bert_control(code)) return "";
    if (code != ' ' && is_white_space(code)) return " ";
    return std::nullopt;
  });
}

Result with_spaced_ideographs(std::string_view text) {
  Changes changes(text);
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    const std::size_t end = at + c.length;
    if (is_cjk_ideograph(c.code)) {
      changes.replace(at, at, " ");
      changes.replace(end, end, " ");
    }
    at = end;
  }
  return changes.finish();
}

// tokenizers, normalizers/unicode.rs, do_nmt.
Result cleaned_nmt(std::string_view text) {
  return each_character(text, [](std::uint32_t c) -> std::optional<std::string_view> {
    if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return "";
    if (c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
        c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD)
      return " ";
    return std::nullopt;
  });
}

Result stripped(std::string_view text, bool left, bool right) {
  std::size_t begin = 0, end = 0, at = 0;
  bool leading = true;
  while (at < text.size()) {
    const Character c = character_at(text, at);
    at += c.length;
    if (!is_white_space(c.code)) {
      leading = false;
      end = at;
    } else if (leading) {
      begin = at;
    }
  }
  if (!left) begin = 0;
  if (!right || end < begin) end = right ? begin : text.size();
  Changes changes(text);
  if (begin > 0) changes.replace(0, begin, "");
  if (end < text.size()) changes.replace(end, text.size(), "");
  return changes.finish();
}

// At the end of a text SentencePiece takes its own sign for a space for one, too.
Result squeezed(std::string_view text) {
  std::size_t last = text.size();  // where the text ends without those
  for (;;) {
    const std::string_view rest = text.substr(0, last);
    if (rest.ends_with(' '))
      --last;
    else if (rest.ends_with(kSpaceMark))
      last -= kSpaceMark.size();
    else
      break;
  }
  Changes changes(text);
  for (std::size_t at = 0; at < last;) {
    const std::size_t begin = text.find(' ', at);
    if (begin >= last) break;
    const std::size_t end = text.find_first_not_of(' ', begin);
    const std::size_t kept = begin == 0 ? 0 : 1;
    if (end - begin > kept) changes.replace(begin + kept, end, "");
    at = end;
  }
  if (last < text.size()) changes.replace(last, text.size(), "");
  return changes.finish();
}

Result replaced(std::string_view text, std::string_view pattern, std::string_view with) {
  Changes changes(text);
  for (std::size_t at = 0; (at = text.find(pattern, at)) != std::string_view::npos; at += pattern.size())
    changes.replace(at, at + pattern.size(), with);
  return changes.finish();
}

Result replaced(std::string_view text, const Expression& pattern, std::string_view with) {
  Changes changes(text);
  Expression::Matches matches(pattern, text);
  while (const auto match = matches.next()) changes.replace(match->begin, match->end, with);
  return changes.finish();
}

}  // namespace

struct Normalizer::Step {
  std::function<Result(std::string_view)> apply;
};

Normalizer::Normalizer(const std::vector<NormalizerStep>& steps) {
  using Kind = NormalizerStep::Kind;
  const auto add = [&](std::function<Result(std::string_view)> apply) {
    steps_.push_back(std::make_unique<Step>(Step{std::move(apply)}));
  };
  const auto add_form = [&](NormalForm form) {
    add([form](std::string_view text) { return normal_form(text, form); });
  };
  for (const NormalizerStep& step : steps) switch (step.kind) {
      case Kind::nfc:
        add_form(NormalForm::c);
        break;
      case Kind::nfd:
        add_form(NormalForm::d);
        break;
      case Kind::nfkc:
        add_form(NormalForm::kc);
        break;
      case Kind::nfkd:
        add_form(NormalForm::kd);
        break;
      case Kind::lowercase:
        add(lowered);
        break;
      case Kind::strip_marks:
        add([](std::string_view text) { return without(text, is_mark); });
        break;
      case Kind::strip_accents:
        add_form(NormalForm::d);
        add([](std::string_view text) { return without(text, is_accent); });
        break;
      case Kind::clean:
        add(cleaned);
        break;
      case Kind::space_ideographs:
        add(with_spaced_ideographs);
        break;
      case Kind::clean_nmt:
        add(cleaned_nmt);
        break;
      case Kind::replace:
        if (step.expression) {
          const auto pattern = std::make_shared<const Expression>(step.pattern);
          add([pattern, with = step.content](std::string_view text) { return replaced(text, *pattern, with); });
        } else if (!step.pattern.empty()) {
          add([pattern = step.pattern, with = step.content](std::string_view text) {
            return replaced(text, pattern, with);
          });
        }
        break;
      case Kind::prepend:
        add([with = step.content](std::string_view text) {
          Changes changes(text);
          if (!text.empty()) changes.replace(0, 0, with);
          return changes.finish();
        });
        break;
      case Kind::strip:
        add([left = step.left, right = step.right](std::string_view text) { return stripped(text, left, right); });
        break;
      case Kind::squeeze:
        add(squeezed);
        break;
      case Kind::charsmap:
      case Kind::charsmap_by_grapheme: {
        const auto map = std::make_shared<const Charsmap>(step.content);
        if (step.kind == Kind::charsmap)
          add([map](std::string_view text) { return map->apply(text); });
        else
          add([map](std::string_view text) { return map->apply_by_grapheme(text); });
        break;
      }
    }
}

Normalizer::~Normalizer() = default;

void Normalizer::apply(Draft& draft) const {
  for (const auto& step : steps_)
    if (auto rewritten = step->apply(draft.text())) draft.rewrite(*std::move(rewritten));
}

}  // namespace regard
