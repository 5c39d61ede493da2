#include "lesson/answer.h"

#include <string>

namespace regard {
namespace {

constexpr std::size_t kMostDigits = 9;

// The digits at the start of `text`, taken from it; nothing where there are none or too many.
std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t* count = nullptr) {
  std::int64_t value = 0;
  std::size_t n = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9')
    value = n < kMostDigits ? value * 10 + (text[n++] - '0') : (n++, 0);
  text.remove_prefix(n);
  if (count) *count = n;
  if (n == 0 || n > kMostDigits) return std::nullopt;
  return value;
}

struct Typed {
  Rational value;
  std::optional<std::int64_t> places;  // decimal places; nothing for a fraction or a whole number
};

std::optional<Typed> parse(std::string_view given) {
  std::string kept;
  for (const char c : given)
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') kept += c;
  constexpr std::string_view kMinus = "\xE2\x88\x92";  // the sign, not the hyphen
  std::string_view text = kept;
  const bool negative = text.starts_with('-') || text.starts_with(kMinus);
  if (negative) text.remove_prefix(text[0] == '-' ? 1 : kMinus.size());
  const Rational sign = negative ? -1 : 1;

  const bool point_first = text.starts_with('.') || text.starts_with(',');
  std::optional<std::int64_t> whole = 0;
  if (!point_first) whole = take_digits(text);
  if (!whole) return std::nullopt;
  if (text.starts_with('/')) {
    text.remove_prefix(1);
    const std::optional<std::int64_t> below = take_digits(text);
    if (!below || *below == 0 || !text.empty()) return std::nullopt;
    return Typed{sign * Rational(*whole, *below), std::nullopt};
  }
  Typed typed{*whole, std::nullopt};
  std::int64_t power = 1;
  if (text.starts_with('.') || text.starts_with(',')) {
    text.remove_prefix(1);
    std::size_t places = 0;
    const std::optional<std::int64_t> digits = take_digits(text, &places);
    if (!digits) return std::nullopt;
    for (std::size_t i = 0; i < places; ++i) power *= 10;
    typed.value = typed.value + Rational(*digits, power);
    typed.places = static_cast<std::int64_t>(places);
  }
  if (text == "%") {
    typed.value = typed.value / Rational(100);
    typed.places = typed.places.value_or(0) + 2;
    text = {};
  }
  if (!text.empty()) return std::nullopt;
  typed.value = sign * typed.value;
  return typed;
}

}  // namespace

std::string_view name(Verdict verdict) {
  return verdict == Verdict::right ? "right" : verdict == Verdict::wrong ? "wrong" : "unreadable";
}

Verdict check_answer(std::string_view given, const Rational& truth) {
  const std::optional<Typed> typed = parse(given);
  if (!typed) return Verdict::unreadable;
  if (typed->value == truth) return Verdict::right;
  if (typed->places.value_or(0) < 2) return Verdict::wrong;
  double half = 0.5;
  for (std::int64_t i = 0; i < *typed->places; ++i) half /= 10;
  const double away = (typed->value - truth).number();
  constexpr double kRounding = 1e-12;  // of the comparison itself
  return (away < 0 ? -away : away) <= half + kRounding ? Verdict::right : Verdict::wrong;
}

}  // namespace regard
