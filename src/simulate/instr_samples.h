#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost/calibration.h"
#include "program/program.h"
#include "program/walk.h"

namespace partita::simulate {

/// A call of `target` where it runs, as calibrations know it; `in`: types of the instruction's inputs. One
/// that adds to a sum in the same kernel is another call.
std::string signature_of(std::string_view target, const Program& program, const Instr& instr,
                         const std::vector<TypeId>& in);

/// An instruction of a rank as a sample without its time: an op by its signature, any other by its bytes.
struct InstrSample {
  At at;
  OpSample sample;
};
/// All of a rank but collectives, waits and new names, in the order in which it runs them.
std::vector<InstrSample> instr_samples(const Model& model, const Program& program, int32_t rank);

}  // namespace partita::simulate
