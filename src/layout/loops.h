#pragma once

#include <vector>

#include "layout/atoms.h"
#include "model/row.h"

namespace partita::layout {

/// Leaves of every dimension of every operand of one op, inputs first, then outputs, then the relation's
/// factors (each factor is one dimension of an operand of its own).
using OperandLeaves = std::vector<std::vector<std::vector<AtomId>>>;

/// The loops of one op: positions tied by its relation, with what splitting each would mean.
OpLoops find_loops(const OpView& op, const Relation& relation, const OperandLeaves& leaves,
                   const std::vector<int64_t>& atom_sizes);

}  // namespace partita::layout
