#pragma once
// Fractions that are exactly what they say: what a person gets who does the lesson with paper and pencil.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

// In lowest terms, the denominator positive. Error{unsupported} where numerator or denominator leave 64 bits, and for a
// division by 0.
class Rational {
 public:
  Rational(std::int64_t numerator = 0, std::int64_t denominator = 1);

  std::int64_t numerator() const { return numerator_; }
  std::int64_t denominator() const { return denominator_; }
  double number() const { return static_cast<double>(numerator_) / static_cast<double>(denominator_); }
  std::string text() const;  // "2/5", "-1/4", "2"

  Rational operator-() const { return Rational(0) - *this; }
  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);
  friend bool operator==(const Rational& a, const Rational& b) = default;

 private:
  std::int64_t numerator_, denominator_;
};

// 2 to a whole power; Error{unsupported} where the power is not whole.
Rational power_of_two(const Rational& power);

// Row-major.
struct RationalMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<Rational> items;

  RationalMatrix() = default;
  RationalMatrix(std::int64_t rows, std::int64_t columns) : rows(rows), columns(columns), items(rows * columns) {}
  RationalMatrix(std::int64_t rows, std::int64_t columns, std::vector<Rational> items);
  Rational& operator()(std::int64_t r, std::int64_t c) { return items[r * columns + c]; }
  const Rational& operator()(std::int64_t r, std::int64_t c) const { return items[r * columns + c]; }
};
RationalMatrix operator*(const RationalMatrix& a, const RationalMatrix& b);
RationalMatrix transposed(const RationalMatrix& a);

// The softmax of scores that are logarithms of fractions, given those fractions: each over the sum of its row. A 0 is a
// key that is not seen; a row of zeros stays so.
RationalMatrix exact_softmax(const RationalMatrix& exponentials);

}  // namespace regard
