#pragma once
// The numbers of the lesson: each as the engine computed it, and beside it, where there is one, what it is exactly.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lesson/rational.h"
#include "tensor/view.h"

namespace regard {

// What a fraction is multiplied with. The worked head is made so that these are all that occur.
enum class Factor { one, ln2, sqrt2_ln2, inverse_sqrt2 };
double number_of(Factor factor);

struct Exact {
  Rational coefficient;
  Factor factor = Factor::one;

  double number() const { return coefficient.number() * number_of(factor); }
  std::string text() const;  // "2/5", "2 ln 2", "0"
};

struct Number {
  double value = 0;  // the engine's
  std::optional<Exact> exact = {};

  // "2/5" where it is a fraction; nothing where it is a multiple of a factor other than 1, or not known exactly.
  std::optional<std::string> fraction() const;
  std::string text() const;     // the exact form, or else decimal()
  std::string decimal() const;  // "0.4", "0.6931", "-∞"
  std::string both() const;     // "2/5 = 0.4"
};
std::string decimal(double value, int digits = 4);  // significant digits, without zeros at the end

// An array of any shape, row-major. What a lesson computed is not changed any more.
struct Numbers {
  std::vector<std::int64_t> shape;
  std::vector<Number> items;

  const Number& operator()(std::int64_t r, std::int64_t c) const { return items[r * shape.back() + c]; }
  std::string row_text(std::int64_t r) const;       // "[1.5, 0.75]"
  std::string row_fractions(std::int64_t r) const;  // "(2/5, 1/5, 2/5)"
};

Numbers numbers(const std::vector<double>& values, std::vector<std::int64_t> shape);
Numbers numbers(View<const float, 2> values);
// The engine's values beside the exact ones; Error{bad_input} where the shapes differ.
Numbers numbers(View<const float, 2> values, const RationalMatrix& exact, Factor factor = Factor::one);
// What was counted or is known exactly from the start.
Number exactly(const Rational& value, Factor factor = Factor::one);
Numbers exactly(const RationalMatrix& values, Factor factor = Factor::one);

}  // namespace regard
