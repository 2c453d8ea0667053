#pragma once

#include <vector>

#include "certify/kernel/given.h"
#include "certify/kernel/ledger.h"

namespace partita::certify {

/// What one instruction makes of what it reads, in terms of the Model. Nothing here looks at a ledger: `in`
/// is what the instruction's inputs hold. Every function is Refused with the reason.

/// The meaning of each output, in order: null where the op does not make it; kOptimize: the updated
/// parameter, then its states. REQUIRES: all of `in` is known; neither kWait nor a collective.
std::vector<Known> made_of(const Given& given, const At& at, const std::vector<Holding>& in);

/// A call of an op: which inputs of the instruction the op's inputs are, these, and the types it makes.
struct Call {
  std::vector<int> inputs;
  std::vector<Operand> in;
  std::vector<const TensorType*> out;
};
Call call_of(const Given& given, const Instr& instr, const std::vector<Holding>& in);

/// Does what is added fit what it is added to, and lie elsewhere?
void check_sides(const Given& given, const Instr& instr, const std::vector<Holding>& in);
/// The value as an addend of `instr.sum`, of which it may be an operand; itself where there is none.
Meaning addend_of(const Given& given, const Instr& instr, const Meaning& value, const TensorType& type);
/// What `there` means when `more` is added to it.
Meaning total(const Given& given, const Instr& instr, const Meaning& there, const Meaning& more,
              const TensorType& type);

/// The norm of all gradients that the instruction needs; null: none.
Known norm_read(const Given& given, const Instr& instr, const std::vector<Holding>& in);

}  // namespace partita::certify
