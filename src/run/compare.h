#pragma once

#include <map>
#include <string>
#include <vector>

#include "run/host_tensor.h"

namespace partita::run {

/// Largest |a - b| over all elements; infinite where only one of them is not a number or the shapes differ.
double largest_difference(const HostView& a, const HostView& b);
/// Largest magnitude of an element; 0 if there is none.
double largest_magnitude(const HostView& a);

/// How far each of `values` lies from its `reference`: the largest difference over the tensor's largest
/// magnitude, which counts for at least `floor` times the largest magnitude over all of `reference`. So a
/// gradient that is zero but for rounding is measured against the others. A value only one side has is
/// infinitely far. Example: key biases have gradients near 1e-17 where others reach 1e-2: with floor 1e-4
/// their noise counts as 1e-11. What an element's difference is `explained` by (name: value less reference)
/// does not count; it never makes an error larger.
std::map<std::string, double> relative_errors(
    const HostTensors& values, const HostTensors& reference, double floor,
    const std::map<std::string, std::vector<double>>& explained = {});

}  // namespace partita::run
