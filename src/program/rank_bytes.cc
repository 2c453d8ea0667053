#include "program/rank_bytes.h"

#include <algorithm>

#include "program/local_view.h"

namespace partita::program {
namespace {

/// The fused optimizers walk parameter and gradient in step: a gradient that lies differently is copied
/// first.
bool lie_alike(const Lie& a, const Lie& b) {
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

}  // namespace

ProgramBytes::ProgramBytes(const Model& model, const Program& program) : model_(model), program_(program) {
  for (const auto& [parameter, gradient] : model.gradients) gradients_.insert(gradient);
}

const KernelBytes& ProgramBytes::kernel(const Instr& instr, const std::vector<TypeId>& in) {
  Entry& entry = entries_[&instr];
  if (entry.known && entry.in == in) return entry.bytes;
  OpView view = local_view(model_, program_, instr, in);
  entry = {true, in, {instr.view ? 0 : retained_of(view), workspace_of(view)}};
  return entry.bytes;
}

RankBytes::RankBytes(ProgramBytes& shared, const RankProgram& rank, Observer observe)
    : shared_(shared),
      model_(shared.model()),
      program_(shared.program()),
      observe_(std::move(observe)),
      held_(rank, shared.program().microbatches) {}

void RankBytes::load(const Load& load) {
  Role role = model_[load.tensor].role;
  Cause cause = load.state >= 0             ? Cause::kOptimizer
                : role == Role::kBatchInput ? Cause::kActivations
                                            : Cause::kParameters;
  enter(load.microbatch);
  give(load.slot, held_.allocate(bytes_of(program_[load.type]), cause), load.type);
}

void RankBytes::receive(const Action& action) {
  give(action.slot, held_.allocate(bytes_of(program_[action.type]), Cause::kCommunication), action.type);
}

void RankBytes::make(const Instr& instr, int32_t number) {
  Effects does = effects(instr);
  if (instr.kind == InstrKind::kCompute)
    compute(instr, number);
  else if (does.allocates)
    allocate(instr, does.needs_group ? Cause::kCommunication : Cause::kTemporary);
  else if (does.alias >= 0)
    rename(instr, number);
  mark(number, 0);
}

void RankBytes::drop(const Instr& instr) {
  for (Slot slot : instr.drop) held_.drop(slot, microbatch_);
}

void RankBytes::mark(int32_t number, Bytes extra) {
  held_.mark(number, extra);
  if (observe_) observe_(held_.held().all + extra);
}

void RankBytes::allocate(const Instr& instr, Cause cause) {
  give(instr.out[0], held_.allocate(bytes_of(program_[instr.types[0]]), cause), instr.types[0]);
}

void RankBytes::compute(const Instr& instr, int32_t number) {
  if (instr.into >= 0) return accumulate(instr);
  std::vector<TypeId> in;
  for (Slot slot : instr.in) in.push_back(name(slot).type);
  auto [retained, workspace] = kernel(instr, in);
  Bytes unkept = 0;
  size_t keeper = keeper_of(model_[instr.op]);
  for (size_t o = 0; o < instr.out.size(); ++o) {
    if (!instr.types[o]) continue;
    Bytes bytes = instr.view ? 0 : bytes_of(program_[instr.types[o]]) + (o == keeper ? retained : 0);
    if (instr.out[o].index < 0) {
      unkept += bytes;
      continue;
    }
    bool gradient = shared_.is_gradient(model_[instr.op].outputs[o]);
    int storage = instr.view ? name(instr.in[0]).storage
                             : held_.allocate(bytes, gradient ? Cause::kGradients : Cause::kTemporary);
    Shape strides = strides_of_output(instr, program_[instr.types[o]]);
    give(instr.out[o], storage, instr.types[o]);
    if (strides != program_[instr.types[o]].strides) name(instr.out[o]).gaps = std::move(strides);
  }
  mark(number, unkept + workspace);
}

Shape RankBytes::strides_of_output(const Instr& instr, const TensorType& type) {
  if (instr.view) return strides_of_view(model_[instr.op], instr, lie(instr.in[0]), type.shape);
  if (!copies_storage(model_[instr.op])) return type.strides;
  Lie first = lie(instr.in[0]);
  return is_expanded(first.shape, first.strides) ? type.strides : first.strides;
}

Lie RankBytes::lie(Slot slot) {
  const TensorType& type = program_[name(slot).type];
  return {type.shape, name(slot).gaps.empty() ? type.strides : name(slot).gaps};
}

/// What the storage of the first input has beyond it.
Bytes RankBytes::spare(const Instr& instr) {
  Lie first = lie(instr.in[0]);
  if (is_expanded(first.shape, first.strides)) return 0;
  const Name& copied = name(instr.in[0]);
  return held_.bytes(copied.storage) - bytes_of(program_[copied.type]);
}

/// What lies with gaps, or copies what it does not know the size of, is looked at each time.
KernelBytes RankBytes::kernel(const Instr& instr, const std::vector<TypeId>& in) {
  bool gaps =
      std::any_of(instr.in.begin(), instr.in.end(), [&](Slot slot) { return !name(slot).gaps.empty(); });
  bool copies = copies_storage(model_[instr.op]);
  if (instr.view || !(gaps || copies)) return shared_.kernel(instr, in);
  OpView view = local_view(model_, program_, instr, in);
  if (copies) view.spare = spare(instr);
  find_gaps(instr, view);
  return {retained_of(view), workspace_of(view)};
}

void RankBytes::find_gaps(const Instr& instr, OpView& view) {
  std::vector<int32_t> inputs = operands_of(instr);
  for (size_t k = 0; k < inputs.size(); ++k)
    if (Slot slot = instr.in[inputs[k]]; !name(slot).gaps.empty()) {
      view.in_dense[k] = is_dense(program_[name(slot).type].shape, name(slot).gaps);
      view.in_by_place[k] = is_by_place(program_[name(slot).type].shape, name(slot).gaps);
      view.in_turned[k] = is_turned(program_[name(slot).type].shape, name(slot).gaps);
    }
}

/// Kernels that add to what is there need nothing beside it.
void RankBytes::accumulate(const Instr& instr) {
  Name there = name(instr.in[instr.into]);
  if (shared_.is_gradient(model_[instr.sum ? instr.sum : instr.op].outputs[0]))
    held_.belongs(there.storage, Cause::kGradients);
  if (instr.out[0] == instr.in[instr.into]) return;
  give(instr.out[0], there.storage, there.type);
  name(instr.out[0]).gaps = std::move(there.gaps);
}

/// The others keep the storage of their first input.
void RankBytes::rename(const Instr& instr, int32_t number) {
  Name first = name(instr.in[0]);
  if (instr.kind == InstrKind::kAdd && held_.cause(name(instr.in[1]).storage) == Cause::kGradients)
    held_.belongs(first.storage, Cause::kGradients);
  if (instr.kind == InstrKind::kOptimize) {
    const Name& gradient = name(instr.in[1]);
    held_.belongs(gradient.storage, Cause::kGradients);
    if (!lie_alike(lie(instr.in[1]), lie(instr.in[0]))) mark(number, bytes_of(program_[gradient.type]));
  }
  if (instr.out[0] == instr.in[0]) return;
  give(instr.out[0], first.storage, first.type);
  name(instr.out[0]).gaps = std::move(first.gaps);
}

}  // namespace partita::program
