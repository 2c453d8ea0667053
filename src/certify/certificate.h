#pragma once

#include <string>
#include <vector>

#include "layout/atoms.h"
#include "program/fold.h"
#include "program/program.h"

namespace partita::certify {

/// Walks a Program and tracks what every slot means in terms of the Model. Empty: the Program computes what
/// the Model says, up to the order of floating-point sums; else sentences that name rank, action, instruction
/// and op, the first ones first. It knows op rows, loops and boxes, and nothing of how the Program was made.
/// Accepted means:
/// - every instruction reads exactly what its op needs, with the attributes that its piece of the op needs;
/// - collectives and transfers add, join and deliver what they should, over the right ranks in the right
/// order;
/// - nothing is read before it is there or after it is gone, changed while it is needed, or left behind;
/// - no rank waits forever;
/// - in the end the loss, every gradient, every updated parameter and buffer is there, complete, and updated
/// once. REQUIRES: check(model) is empty and atoms == find_atoms(model).
std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program);

/// The same of all ranks that a Program of classes stands for; its cost grows with the classes, not with the
/// ranks. Sentences name classes as ranks.
std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program,
                                 const Fold& fold);

/// The same, and the Program updates by these numbers, which the plan gives: without them those in the
/// Program are believed.
std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program,
                                 const OptimizerSpec& optimizer, const Fold& fold = {});

/// The same by the kernel alone (kernel/walk.h), which looks at every instruction of every micro-batch. The
/// others skip what they know to be the same (memo/driver.h), and ask the kernel where they do not accept.
std::vector<std::string> certify_plainly(const Model& model, const Atoms& atoms, const Program& program,
                                         const Fold& fold = {});

}  // namespace partita::certify
