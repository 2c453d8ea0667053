#include "run/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace partita {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  double error = std::abs(a - b);
  return std::isnan(error) ? kInfinity : error;
}

}  // namespace

double largest_difference(const HostView& a, const HostView& b) {
  if (a.shape != b.shape) return kInfinity;
  std::vector<double> left = to_doubles(a), right = to_doubles(b);
  double largest = 0;
  for (size_t i = 0; i < left.size(); ++i) largest = std::max(largest, difference(left[i], right[i]));
  return largest;
}

double largest_magnitude(const HostView& a) {
  double largest = 0;
  for (double value : to_doubles(a)) largest = std::max(largest, std::abs(value));
  return largest;
}

std::map<std::string, double> relative_errors(const HostTensors& values, const HostTensors& reference,
                                              double floor) {
  double largest = 0;
  for (const auto& [name, tensor] : reference) largest = std::max(largest, largest_magnitude(tensor));
  std::map<std::string, double> errors;
  for (const auto& [name, tensor] : values)
    if (!reference.contains(name)) errors[name] = kInfinity;
  for (const auto& [name, tensor] : reference) {
    auto found = values.find(name);
    double error = found == values.end() ? kInfinity : largest_difference(found->second, tensor);
    double scale = std::max(largest_magnitude(tensor), floor * largest);
    errors[name] = error == 0 ? 0 : error / scale;
  }
  return errors;
}

}  // namespace partita
