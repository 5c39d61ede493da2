#include "lesson/rational.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "tensor/error.h"

namespace regard {
namespace {

[[noreturn]] void too_large() {
  throw Error(ErrorCode::unsupported, "a fraction of the lesson does not fit 64 bits", "use smaller numbers");
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) too_large();
  return result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result)) too_large();
  return result;
}

}  // namespace

Rational::Rational(std::int64_t numerator, std::int64_t denominator) {
  if (denominator == 0) throw Error(ErrorCode::unsupported, "a fraction of the lesson has the denominator 0");
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();  // has no counterpart above 0
  if (numerator == kLowest || denominator == kLowest) too_large();
  const std::int64_t common = std::gcd(numerator, denominator) * (denominator < 0 ? -1 : 1);
  numerator_ = numerator / common;
  denominator_ = denominator / common;
}

std::string Rational::text() const {
  return denominator_ == 1 ? fmt::format("{}", numerator_) : fmt::format("{}/{}", numerator_, denominator_);
}

Rational operator+(const Rational& a, const Rational& b) {
  const std::int64_t common = std::gcd(a.denominator_, b.denominator_);
  return Rational(sum(product(a.numerator_, b.denominator_ / common), product(b.numerator_, a.denominator_ / common)),
                  product(a.denominator_, b.denominator_ / common));
}

Rational operator-(const Rational& a, const Rational& b) { return a + b * Rational(-1); }

Rational operator*(const Rational& a, const Rational& b) {
  const std::int64_t left = std::gcd(a.numerator_, b.denominator_), right = std::gcd(b.numerator_, a.denominator_);
  return Rational(product(a.numerator_ / left, b.numerator_ / right),
                  product(a.denominator_ / right, b.denominator_ / left));
}

Rational operator/(const Rational& a, const Rational& b) { return a * Rational(b.denominator_, b.numerator_); }

Rational power_of_two(const Rational& power) {
  const std::int64_t n = power.numerator();
  if (power.denominator() != 1)
    throw Error(ErrorCode::unsupported, fmt::format("2 to the power of {} is no fraction", power.text()));
  if (n < -62 || n > 62) too_large();
  return n >= 0 ? Rational(std::int64_t{1} << n) : Rational(1, std::int64_t{1} << -n);
}

RationalMatrix::RationalMatrix(std::int64_t rows, std::int64_t columns, std::vector<Rational> items)
    : rows(rows), columns(columns), items(std::move(items)) {
  if (std::ssize(this->items) != rows * columns)
    throw Error(ErrorCode::bad_input,
                fmt::format("a matrix of {} x {} was given {} numbers", rows, columns, std::ssize(this->items)));
}

RationalMatrix operator*(const RationalMatrix& a, const RationalMatrix& b) {
  if (a.columns != b.rows)
    throw Error(ErrorCode::bad_input,
                fmt::format("{} x {} cannot be multiplied with {} x {}", a.rows, a.columns, b.rows, b.columns));
  RationalMatrix result(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j)
      for (std::int64_t k = 0; k < a.columns; ++k) result(i, j) = result(i, j) + a(i, k) * b(k, j);
  return result;
}

RationalMatrix transposed(const RationalMatrix& a) {
  RationalMatrix result(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
  return result;
}

RationalMatrix exact_softmax(const RationalMatrix& exponentials) {
  RationalMatrix weights = exponentials;
  for (std::int64_t i = 0; i < weights.rows; ++i) {
    Rational sum = 0;
    for (std::int64_t j = 0; j < weights.columns; ++j) sum = sum + weights(i, j);
    if (sum == Rational(0)) continue;
    for (std::int64_t j = 0; j < weights.columns; ++j) weights(i, j) = weights(i, j) / sum;
  }
  return weights;
}

}  // namespace regard
