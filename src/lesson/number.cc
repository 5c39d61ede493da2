#include "lesson/number.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "tensor/error.h"

namespace regard {

double number_of(Factor factor) {
  switch (factor) {
    case Factor::one:
      return 1;
    case Factor::ln2:
      return std::numbers::ln2;
    case Factor::sqrt2_ln2:
      return std::numbers::sqrt2 * std::numbers::ln2;
    case Factor::inverse_sqrt2:
      return 1 / std::numbers::sqrt2;
  }
  return 1;
}

std::string Exact::text() const {
  const Rational& a = coefficient;
  if (factor == Factor::one || a == Rational(0)) return a.text();
  if (factor == Factor::inverse_sqrt2) return (a == Rational(1) ? "1" : a.text()) + "/√2";
  const std::string name = factor == Factor::ln2 ? "ln 2" : "√2 ln 2";
  if (a == Rational(1)) return name;
  if (a == Rational(-1)) return "-" + name;
  return a.text() + " " + name;
}

std::optional<std::string> Number::fraction() const {
  if (!exact || (exact->factor != Factor::one && !(exact->coefficient == Rational(0)))) return std::nullopt;
  return exact->coefficient.text();
}

std::string decimal(double value, int digits) {
  if (std::isinf(value)) return value < 0 ? "-∞" : "∞";
  if (std::isnan(value)) return "–";
  const std::string text = fmt::format("{:.{}g}", value, digits);
  return text == "-0" ? "0" : text;
}

std::string Number::text() const { return exact ? exact->text() : decimal(); }
std::string Number::decimal() const { return exact ? regard::decimal(exact->number(), 5) : regard::decimal(value); }
std::string Number::both() const {
  const std::string first = text(), second = decimal();
  if (exact && exact->factor == Factor::one && exact->coefficient.denominator() == 1) return first;
  return first == second ? first : first + " = " + second;
}

std::string Numbers::row_text(std::int64_t r) const {
  std::string text;
  for (std::int64_t c = 0; c < shape.back(); ++c) text += (c > 0 ? ", " : "") + (*this)(r, c).decimal();
  return "[" + text + "]";
}

std::string Numbers::row_fractions(std::int64_t r) const {
  std::string text;
  for (std::int64_t c = 0; c < shape.back(); ++c) text += (c > 0 ? ", " : "") + (*this)(r, c).text();
  return "(" + text + ")";
}

Numbers numbers(const std::vector<double>& values, std::vector<std::int64_t> shape) {
  Numbers result{.shape = std::move(shape), .items = {}};
  for (const double value : values) result.items.push_back({value, {}});
  return result;
}

Numbers numbers(View<const float, 2> values) {
  Numbers result{.shape = {values.shape[0], values.shape[1]}, .items = {}};
  for (std::int64_t r = 0; r < values.shape[0]; ++r)
    for (std::int64_t c = 0; c < values.shape[1]; ++c) result.items.push_back({values(r, c), {}});
  return result;
}

Numbers numbers(View<const float, 2> values, const RationalMatrix& exact, Factor factor) {
  if (values.shape[0] != exact.rows || values.shape[1] != exact.columns)
    throw Error(ErrorCode::bad_input, "numbers of the lesson and their exact forms differ in shape");
  Numbers result = numbers(values);
  for (std::size_t i = 0; i < result.items.size(); ++i) result.items[i].exact = Exact{exact.items[i], factor};
  return result;
}

Number exactly(const Rational& value, Factor factor) {
  const Exact exact{value, factor};
  return {exact.number(), exact};
}

Numbers exactly(const RationalMatrix& values, Factor factor) {
  Numbers result{.shape = {values.rows, values.columns}, .items = {}};
  for (const Rational& value : values.items) result.items.push_back(exactly(value, factor));
  return result;
}

}  // namespace regard
