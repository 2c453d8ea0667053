#include "run/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interrupt.h"

namespace partita::run {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  double error = std::abs(a - b);
  return std::isnan(error) ? kInfinity : error;
}

/// Nothing where the whole difference counts.
const std::vector<double>* find(const std::map<std::string, std::vector<double>>& explained,
                                const std::string& name) {
  auto found = explained.find(name);
  return found == explained.end() ? nullptr : &found->second;
}

double largest_difference(const HostView& a, const HostView& b, const std::vector<double>* explained) {
  if (a.shape != b.shape) return kInfinity;
  std::vector<double> left = to_doubles(a), right = to_doubles(b);
  double largest = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    double error = difference(left[i], right[i]);
    if (explained && error > 0) error = std::min(error, difference(left[i] - right[i], (*explained)[i]));
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace

double largest_difference(const HostView& a, const HostView& b) { return largest_difference(a, b, nullptr); }

double largest_magnitude(const HostView& a) {
  double largest = 0;
  for (double value : to_doubles(a)) largest = std::max(largest, std::abs(value));
  return largest;
}

std::map<std::string, double> relative_errors(const HostTensors& values, const HostTensors& reference,
                                              double floor,
                                              const std::map<std::string, std::vector<double>>& explained) {
  double largest = 0;
  std::map<std::string, double> errors, magnitudes;
  for (const auto& [name, tensor] : reference)
    largest = std::max(largest, magnitudes[name] = largest_magnitude(tensor));
  for (const auto& [name, tensor] : values)
    if (!reference.contains(name)) errors[name] = kInfinity;
  for (const auto& [name, tensor] : reference) {
    check_interrupt();
    auto found = values.find(name);
    double error =
        found == values.end() ? kInfinity : largest_difference(found->second, tensor, find(explained, name));
    double scale = std::max(magnitudes[name], floor * largest);
    errors[name] = error == 0 ? 0 : error / scale;
  }
  return errors;
}

}  // namespace partita::run
