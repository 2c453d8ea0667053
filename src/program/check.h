#pragma once

#include <string>
#include <vector>

#include "program/fold.h"
#include "program/program.h"

namespace partita::program {

/// Everything that makes a Program meaningless to walk, one sentence each; empty when it is well formed:
/// slots, types, bodies, ops, groups, peers and micro-batches are in range, and every instruction has the
/// operands of its kind. What it computes is the certificate's business.
std::vector<std::string> check(const Program& program, const Model& model, const Fold& fold = {});

}  // namespace partita::program
