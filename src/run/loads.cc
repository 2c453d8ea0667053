#include "run/loads.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace partita::run {
namespace {

// Slots whose value of the beginning is gone or replaced at the end of the step.
std::set<Slot> replaced_slots(const Program& program, const RankProgram& rank) {
  std::set<Slot> replaced;
  for (const Action& action : rank.actions) {
    if (action.kind == ActionKind::kFree || action.kind == ActionKind::kPostReceive)
      replaced.insert(action.slot);
    if (action.kind != ActionKind::kRun) continue;
    for (const Instr& instr : program[action.body].instrs) {
      replaced.insert(instr.out.begin(), instr.out.end());
      replaced.insert(instr.drop.begin(), instr.drop.end());
    }
  }
  return replaced;
}

bool is_update(const Result& result, TensorId tensor) {
  return (result.kind == Result::kParameter || result.kind == Result::kBuffer) && result.tensor == tensor;
}

const Result* update_here(const RankProgram& rank, const Load& load) {
  for (const Result& result : rank.results)
    if (is_update(result, load.tensor) && result.box == load.box) return &result;
  return nullptr;
}

bool updated_somewhere(const Program& program, TensorId tensor) {
  for (const RankProgram& rank : program.ranks)
    for (const Result& result : rank.results)
      if (is_update(result, tensor)) return true;
  return false;
}

}  // namespace

bool lasts(const Tensor& tensor) { return tensor.role == Role::kParameter || tensor.role == Role::kBuffer; }

std::vector<NextLoad> plan_loads(const Program& program, const Model& model, int32_t number) {
  const RankProgram& rank = program.ranks[number];
  std::set<Slot> replaced = replaced_slots(program, rank);
  std::vector<NextLoad> plan;
  for (const Load& load : rank.loads) {
    bool stays = !replaced.contains(load.slot);
    const Tensor& tensor = model[load.tensor];
    if (tensor.role == Role::kBatchInput) {
      plan.push_back({&load, Next::kBatch, {}});
    } else if (load.state >= 0) {
      if (!stays)
        input_error(
            "program: rank {} drops or replaces state {} of {} during the step; it must stay in its slot",
            number, load.state, tensor.name);
      plan.push_back({&load, Next::kStay, {}});
    } else if (const Result* update = update_here(rank, load)) {
      plan.push_back({&load, Next::kCarry, update->slot});
    } else if (updated_somewhere(program, load.tensor)) {
      plan.push_back({&load, Next::kReassemble, {}});
    } else {
      plan.push_back({&load, stays ? Next::kStay : Next::kCopy, {}});
    }
  }
  return plan;
}

}  // namespace partita::run
