#include "base/rational.h"

#include <charconv>
#include <numeric>

#include "base/error.h"

namespace partita::base {
namespace {

using Wide = __int128;

Wide gcd_wide(Wide a, Wide b) {
  while (b != 0) {
    Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

int64_t narrow(Wide value) {
  CHECK(value <= INT64_MAX && value >= -Wide(INT64_MAX));
  return static_cast<int64_t>(value);
}

Rational reduce(Wide num, Wide den) {
  CHECK(den != 0);
  Wide common = gcd_wide(num, den);
  if (den < 0) common = -common;
  return Rational(narrow(num / common), narrow(den / common));
}

int64_t parse_whole(std::string_view digits, std::string_view text, std::string_view where) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
    input_error("{}: \"{}\" is not a number; write a whole number, a decimal or a fraction such as 6/5",
                where, text);
  return value;
}

}  // namespace

Rational::Rational(int64_t num, int64_t den) : num_(num), den_(den) {
  if (den_ == 1) return;
  CHECK(den_ != 0);
  int64_t common = std::gcd(num_, den_);
  if (den_ < 0) common = -common;
  num_ /= common;
  den_ /= common;
}

std::string Rational::str() const {
  return den_ == 1 ? fmt::format("{}", num_) : fmt::format("{}/{}", num_, den_);
}

// Whole numbers are by far the most common costs, so they skip the reduction.
Rational operator+(const Rational& a, const Rational& b) {
  if (a.den_ == b.den_ && a.den_ == 1) return Rational(narrow(Wide(a.num_) + b.num_));
  return reduce(Wide(a.num_) * b.den_ + Wide(b.num_) * a.den_, Wide(a.den_) * b.den_);
}

Rational operator-(const Rational& a, const Rational& b) {
  if (a.den_ == b.den_ && a.den_ == 1) return Rational(narrow(Wide(a.num_) - b.num_));
  return reduce(Wide(a.num_) * b.den_ - Wide(b.num_) * a.den_, Wide(a.den_) * b.den_);
}

Rational operator*(const Rational& a, const Rational& b) {
  return reduce(Wide(a.num_) * b.num_, Wide(a.den_) * b.den_);
}

Rational operator/(const Rational& a, const Rational& b) {
  return reduce(Wide(a.num_) * b.den_, Wide(a.den_) * b.num_);
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  return Wide(a.num_) * b.den_ <=> Wide(b.num_) * a.den_;
}

Rational parse_rational(std::string_view text, std::string_view where) {
  if (size_t slash = text.find('/'); slash != text.npos) {
    int64_t den = parse_whole(text.substr(slash + 1), text, where);
    if (den <= 0) input_error("{}: \"{}\" has no positive denominator", where, text);
    return Rational(parse_whole(text.substr(0, slash), text, where), den);
  }
  size_t point = text.find('.');
  if (point == text.npos) return Rational(parse_whole(text, text, where));
  std::string digits(text.substr(0, point));
  std::string_view fraction = text.substr(point + 1);
  if (fraction.size() > 15) input_error("{}: \"{}\" has more than 15 decimals", where, text);
  digits += fraction;
  int64_t den = 1;
  for (size_t i = 0; i < fraction.size(); ++i) den *= 10;
  return Rational(parse_whole(digits, text, where), den);
}

}  // namespace partita::base
