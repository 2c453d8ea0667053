#include "simulate/instr_cost.h"

#include "base/error.h"
#include "profile/profile.h"
#include "program/local_view.h"

namespace partita {

InstrCosts::InstrCosts(const Model& model, const Program& program, const Cluster& cluster)
    : model_(model), program_(program), cluster_(cluster) {
  for (const Body& body : program.bodies) known_.emplace_back(body.instrs.size());
}

Seconds InstrCosts::local(BodyId body, int32_t index, const std::vector<TypeId>& in, int rank) {
  Known& known = known_[body.value][index];
  const Device* device = &device_of(cluster_, rank);
  if (known.seconds < 0 || known.in != in || known.device != device)
    known = {in, device, compute(program_[body].instrs[index], in, *device)};
  return known.seconds;
}

Seconds InstrCosts::compute(const Instr& instr, const std::vector<TypeId>& in, const Device& device) const {
  if (instr.kind == InstrKind::kMove || (instr.kind == InstrKind::kCompute && instr.view)) return 0;
  Bytes moved = 0;
  for (TypeId type : in) moved += bytes(type);
  if (instr.kind == InstrKind::kSlice) moved = 2 * bytes(instr.types[0]);
  if (instr.kind == InstrKind::kZeros) moved = bytes(instr.types[0]);
  if (instr.kind == InstrKind::kAdd || instr.kind == InstrKind::kScale) moved += bytes(in[0]);
  if (instr.kind == InstrKind::kCast || instr.kind == InstrKind::kConcat) moved += bytes(instr.types[0]);
  if (instr.kind == InstrKind::kOptimize)
    moved += moved - bytes(in[1]);  // all but the gradient are written back
  if (instr.kind != InstrKind::kCompute) {
    TypeId type = in.empty() ? instr.types[0] : in[0];
    return compute_seconds(device, program_[type].dtype, 0, moved);
  }
  for (TypeId type : instr.types)
    if (type) moved += bytes(type);
  OpView view = local_view(model_, program_, instr, in);
  return compute_seconds(device, view.dtype, flops_of(view), moved);
}

Seconds InstrCosts::collective(const Instr& instr, TypeId in, const std::vector<int32_t>& ranks) const {
  Group group = group_of(cluster_, ranks);
  switch (instr.kind) {
    case InstrKind::kAllReduce:
      return all_reduce_seconds(cluster_, bytes(in), group);
    case InstrKind::kAllGather:
      return all_gather_seconds(cluster_, bytes(instr.types[0]), group);
    default:
      CHECK(instr.kind == InstrKind::kReduceScatter);
      return reduce_scatter_seconds(cluster_, bytes(in), group);
  }
}

}  // namespace partita
