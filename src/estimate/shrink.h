#pragma once

#include <vector>

#include "estimate/units.h"

namespace partita::estimate {

/// A step with runs of equal layers cut down to two of them. What a layer costs in it, it costs in the whole
/// step; totals are summed up over `stands_for`.
struct Shrunk {
  Model model;
  Units units;                  // of the whole step
  std::vector<int> stands_for;  // by unit of the whole step: the unit of `model` that is like it

  bool operator==(const Shrunk&) const = default;
};

/// Leaves a run as it is where its layers differ, or something else reads a layer in its middle.
/// REQUIRES: check(model) is empty. Example: GPT-3's 96 layers become 2, and units 2 to 96 stand for unit 2.
Shrunk shrink(const Model& model);

}  // namespace partita::estimate
