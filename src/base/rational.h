#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace partita::base {

/// An exact fraction in lowest terms with a positive denominator. Overflow of 64 bits is a Bug, never a wrong
/// answer. Example: `Rational(1, 3) + Rational(1, 6) == Rational(1, 2)`.
class Rational {
 public:
  constexpr Rational() = default;
  Rational(int64_t whole) : num_(whole) {}  // NOLINT: whole numbers are fractions
  Rational(int64_t num, int64_t den);

  int64_t num() const { return num_; }
  int64_t den() const { return den_; }
  double to_double() const { return static_cast<double>(num_) / static_cast<double>(den_); }
  /// "7", "16/3".
  std::string str() const;

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  /// REQUIRES: b != 0.
  friend Rational operator/(const Rational& a, const Rational& b);
  Rational& operator+=(const Rational& b) { return *this = *this + b; }
  Rational& operator-=(const Rational& b) { return *this = *this - b; }
  friend bool operator==(const Rational&, const Rational&) = default;
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);

 private:
  int64_t num_ = 0;
  int64_t den_ = 1;
};

/// Reads "3", "-2", "0.05", "6/5". Throws InputError that names `where`.
Rational parse_rational(std::string_view text, std::string_view where);

}  // namespace partita::base
