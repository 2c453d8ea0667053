#pragma once

#include <string>

#include "model/row.h"

namespace partita::model {

/// What is wrong with the letters of an op (`Op::axes`), as one sentence; empty when they fit its operands.
std::string check_axes(const OpView& op);

/// The relation that the letters of an op state. One letter for each dimension of each tensor operand, in
/// order of appearance, then those of its results. The same letter is the same dimension; a letter that a
/// result lacks is summed over, so that splitting it leaves a Partial; `!h` stays whole. Example: "m k, k n
/// -> m n" is mm; "b s !h, !h -> b s !h" a norm over h with a weight. REQUIRES: check_axes(op) is empty.
void relate_axes(const OpView& op, Relation& relation);

/// The relation of a product by the letters of its row (Row::letters): linear in each factor. `bias`: operand
/// 0 is added to the product of the others; its dimensions are the last of the result, or 1.
void relate_product(const OpView& op, std::string_view letters, bool bias, Relation& relation);

}  // namespace partita::model
