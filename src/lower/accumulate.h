#pragma once

#include "lower/code.h"

namespace partita::lower {

/// Lets sums grow where they lie, instead of making an addend first and adding it then:
/// - a sum that begins with zeros begins with its first addend;
/// - an op that can add its result to what is there (row.h) does;
/// - an addition of the Model goes into the storage of an operand that nothing else reads: the gradient of a
///   tied embedding into that of the head. Two accumulators that are only added up become one.
/// Example: `g = mm(a, b); z = zeros; z += g` in a loop becomes `z = mm(a, b)` in the first piece and `z +=
/// mm(a, b)` in one kernel in the others.
Code accumulate(const Model& model, Code code);

}  // namespace partita::lower
