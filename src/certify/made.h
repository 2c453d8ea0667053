#pragma once

#include <vector>

#include "layout/atoms.h"
#include "program/program.h"
#include "program/walk.h"

namespace partita::certify {

/// What output `out` of the instruction at `at` is: all of this box of this tensor, no addend of it.
struct Made {
  At at;
  int32_t out = 0;
  TensorId tensor;
  Box box;
  bool operator==(const Made&) const = default;
};

/// Every complete value that instructions make, as the certificate reads them, in its order; values after the
/// optimizer or gradient clipping are left out. What an instruction makes that the certificate refuses is not
/// known. REQUIRES: as certify.
std::vector<Made> made_by(const Model& model, const Atoms& atoms, const Program& program);

}  // namespace partita::certify
