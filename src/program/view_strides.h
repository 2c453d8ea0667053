#pragma once

#include "model/model.h"
#include "program/program.h"

namespace partita::program {

/// How a value lies in memory, in elements. A type of a Program says only the order of its dimensions: the
/// second half of the columns of [4, 6] has strides {6, 1}, its type {3, 1}.
struct Lie {
  Shape shape, strides;
};

/// Strides of an output, of this shape, of the view `instr` of a value that lies so.
/// Example: slice [4, 6] with strides {6, 1} to [4, 3] keeps {6, 1}; select of column 2 leaves {6}.
/// Of an op that is no view known here: dense.
Shape strides_of_view(const Op& op, const Instr& instr, const Lie& in, const Shape& out);

}  // namespace partita::program
