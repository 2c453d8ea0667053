#pragma once

#include <vector>

#include "certify/kernel/given.h"
#include "certify/kernel/ledger.h"

namespace partita::certify {

/// What the inputs of an instruction hold. Refused where one may not be read.
std::vector<Holding> read_inputs(const Given& given, const At& at, const Ledger& ledger);
/// Is every one known? What follows something that was refused is not.
bool all_known(const std::vector<Holding>& in);

/// Puts what an instruction, or one member of a collective, makes of `in` where it belongs: a new storage, a
/// new name of an old one, or the changed storage under its new name. Refused where it has not the type that
/// it says, or the slot or storage may not be changed. `made`: as made_of gives it (instruction.h).
void put(const Given& given, const At& at, const std::vector<Holding>& in, const std::vector<Known>& made,
         Ledger& ledger);

/// After something was refused: its outputs are there, but nobody knows what they mean.
void forget_outputs(const Given& given, const At& at, Ledger& ledger);

}  // namespace partita::certify
