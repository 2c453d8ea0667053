#pragma once

#include <string>
#include <vector>

#include "cost/prices.h"
#include "estimate/units.h"
#include "lower/lower.h"

namespace partita::estimate {

/// What one unit takes on one rank for one micro-batch. Bytes are above what the rank holds all the time.
struct UnitCost {
  Seconds forward = 0;
  Seconds input_grad = 0;  // backward without what only parameters' gradients need
  Seconds weight_grad = 0;
  Seconds accumulate = 0;   // of weight_grad: adding to the sums over micro-batches
  Bytes saved = 0;          // more held after its forward than before
  Bytes forward_peak = 0;   // most held during its forward, above what was held at its start
  Bytes backward_peak = 0;  // most during its backward, above what it and the units before it saved
  Bytes once_peak = 0;      // the same with its gradients kept as they are made: one micro-batch
  Bytes parts = 0;          // of its gradients that are no parameter's whole one: of tied weights
  Bytes leaves = 0;         // that go on to later units

  Seconds backward() const { return input_grad + weight_grad; }
};

/// Bytes that a rank holds all the time if it runs one of the units.
struct Held {
  Bytes bytes = 0;
  bool per_microbatch = false;  // a piece of the batch: once for every micro-batch
  bool sum = false;             // over micro-batches: not there with one of them
  std::vector<int> units;       // ascending
};

/// What belongs to one trainable parameter on one rank where it is not cut over the data parallel axis.
struct ParameterCost {
  std::string name;
  Bytes own = 0, gradient = 0, states = 0;
  Bytes moved = 0;      // that the optimizer reads and writes
  Seconds summed = 0;   // for adding its gradient up over tensor parallel ranks, after the last micro-batch
  bool late = false;    // its gradient is made of parts after the last micro-batch
  bool apart = false;   // data parallel ranks have pieces of their own: experts
  bool copied = false;  // the gradient lies otherwise than the parameter: the optimizer copies it first
  DType dtype = DType::kFloat32;                 // in which it is updated
  bool in_forward = false, in_backward = false;  // which of them read it
  int64_t longest = 1;                           // dimension: it can be cut into so many pieces
  std::vector<int> units;
};

/// Costs of a step by unit, for one way to split it over the tensor parallel axes and one micro-batch size.
struct UnitCosts {
  std::vector<UnitCost> units;
  std::vector<ParameterCost> parameters;
  std::vector<Held> held;
  Seconds prologue = 0, epilogue = 0;  // apart from updates
};

/// Reads the costs off what one rank runs for `plan`: one stage, data parallel or not.
/// REQUIRES: `prepared` was made with form_of(plan).
UnitCosts measure_units(const Prepared& prepared, const Plan& plan, const Prices& prices);

}  // namespace partita::estimate
