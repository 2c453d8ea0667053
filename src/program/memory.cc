#include "program/memory.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/interrupt.h"
#include "program/effects.h"
#include "program/held_bytes.h"
#include "program/local_view.h"
#include "program/outside.h"
#include "program/view_strides.h"

namespace partita::program {
namespace {

constexpr std::string_view kCauseNames[] = {"parameters",  "gradients", "optimizer",
                                            "activations", "temporary", "communication"};

/// The fused optimizers walk parameter and gradient in step: a gradient that lies differently is copied
/// first.
bool lie_alike(const Lie& a, const Lie& b) {
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

/// What kernels take beside their outputs; ranks and micro-batches that call one on the same types share it.
struct KernelBytes {
  Bytes retained = 0, workspace = 0;
};
class Hidden {
 public:
  Hidden(const Model& model, const Program& program) : model_(model), program_(program) {}

  const KernelBytes& of(const Instr& instr, const std::vector<TypeId>& in) {
    Entry& entry = entries_[&instr];
    if (entry.known && entry.in == in) return entry.bytes;
    OpView view = local_view(model_, program_, instr, in);
    entry = {true, in, {instr.view ? 0 : retained_of(view), workspace_of(view)}};
    return entry.bytes;
  }

 private:
  struct Entry {
    bool known = false;
    std::vector<TypeId> in;
    KernelBytes bytes;
  };
  const Model& model_;
  const Program& program_;
  std::unordered_map<const Instr*, Entry> entries_;
};

/// What bodies did, and the slots outside of them; ranks and micro-batches that run one on the same share it.
struct BodiesBytes {
  explicit BodiesBytes(const Program& program) : known(program.bodies.size()) {
    for (const Body& body : program.bodies) outside.push_back(outside_of(body));
  }
  std::vector<std::vector<Slot>> outside;
  std::vector<std::vector<BodyBytes>> known;
};
/// Ways in which one body is given things that are worth remembering: a few, and not at all where each run
/// differs.
constexpr size_t kMostWays = 8;

/// Walks one rank.
class RankWalk {
 public:
  RankWalk(const Model& model, const Program& program, const RankProgram& rank,
           const std::set<TensorId>& gradients, Hidden& hidden, BodiesBytes& bodies)
      : model_(model),
        program_(program),
        rank_(rank),
        gradients_(gradients),
        hidden_(hidden),
        bodies_(bodies),
        held_(rank, program.microbatches) {}

  /// `causes`: of all storages, where they are known.
  RankMemory run(const std::vector<Cause>* causes) {
    if (causes) held_.know(*causes);
    for (const Load& load : rank_.loads) take_load(load);
    note(held_.held(), -1, -1);
    for (size_t a = 0; a < rank_.actions.size(); ++a) {
      check_interrupt();
      memory_.during.push_back(held_.held().all);
      act(rank_.actions[a], static_cast<int32_t>(a));
    }
    for (const Result& result : rank_.results)
      if (result.kind == Result::kGradient) held_.belongs(name(result.slot).storage, Cause::kGradients);
    return std::move(memory_);
  }

  const std::vector<Cause>& causes() const { return held_.causes(); }

 private:
  using Name = HeldBytes::Name;

  Name& name(Slot slot) { return held_.name(slot, microbatch_); }
  void give(Slot slot, int32_t storage, TypeId type) { held_.give(slot, microbatch_, storage, type); }

  void take_load(const Load& load) {
    Role role = model_[load.tensor].role;
    Cause cause = load.state >= 0             ? Cause::kOptimizer
                  : role == Role::kBatchInput ? Cause::kActivations
                                              : Cause::kParameters;
    microbatch_ = load.microbatch;
    give(load.slot, held_.allocate(bytes_of(program_[load.type]), cause), load.type);
  }

  void act(const Action& action, int32_t number) {
    microbatch_ = action.microbatch;
    if (action.kind == ActionKind::kFree) held_.drop(action.slot, microbatch_);
    if (action.kind == ActionKind::kPostReceive) {
      give(action.slot, held_.allocate(bytes_of(program_[action.type]), Cause::kCommunication), action.type);
      note(held_.held(), number, -1);
    }
    if (action.kind == ActionKind::kRun) run_body(action.body, number);
  }

  void run_body(BodyId id, int32_t number) {
    const std::vector<Slot>& outside = bodies_.outside[id.value];
    std::vector<BodyBytes>& known = bodies_.known[id.value];
    CausedBytes begun = held_.held();
    for (const BodyBytes& body : known)
      if (held_.again(body, outside, microbatch_)) return note_body(body, begun, number);
    const Body& body = program_[id];
    held_.enter(body, outside, microbatch_);
    for (size_t i = 0; i < body.instrs.size(); ++i) execute(body.instrs[i], static_cast<int32_t>(i));
    BodyBytes did = held_.leave(outside, microbatch_);
    note_body(did, begun, number);
    if (known.size() < kMostWays) known.push_back(std::move(did));
  }

  void note_body(const BodyBytes& body, CausedBytes begun, int32_t number) {
    if (body.instr >= 0) note(begun += body.peak, number, body.instr);
  }

  void execute(const Instr& instr, int32_t number) {
    Effects does = effects(instr);
    if (instr.kind == InstrKind::kCompute)
      compute(instr, number);
    else if (does.allocates)
      make(instr, does.needs_group ? Cause::kCommunication : Cause::kTemporary);
    else if (does.alias >= 0)
      rename(instr, number);
    held_.mark(number, 0);
    for (Slot slot : instr.drop) held_.drop(slot, microbatch_);
  }

  void make(const Instr& instr, Cause cause) {
    give(instr.out[0], held_.allocate(bytes_of(program_[instr.types[0]]), cause), instr.types[0]);
  }

  void compute(const Instr& instr, int32_t number) {
    if (instr.into >= 0) return accumulate(instr);
    std::vector<TypeId> in;
    for (Slot slot : instr.in) in.push_back(name(slot).type);
    auto [retained, workspace] = hidden(instr, in);
    Bytes unkept = 0;
    size_t keeper = keeper_of(model_[instr.op]);
    for (size_t o = 0; o < instr.out.size(); ++o) {
      if (!instr.types[o]) continue;
      Bytes bytes = instr.view ? 0 : bytes_of(program_[instr.types[o]]) + (o == keeper ? retained : 0);
      if (instr.out[o].index < 0) {
        unkept += bytes;
        continue;
      }
      bool gradient = gradients_.contains(model_[instr.op].outputs[o]);
      int storage = instr.view ? name(instr.in[0]).storage
                               : held_.allocate(bytes, gradient ? Cause::kGradients : Cause::kTemporary);
      Shape strides = strides_of_output(instr, program_[instr.types[o]]);
      give(instr.out[o], storage, instr.types[o]);
      if (strides != program_[instr.types[o]].strides) name(instr.out[o]).gaps = std::move(strides);
    }
    held_.mark(number, unkept + workspace);
  }

  Shape strides_of_output(const Instr& instr, const TensorType& type) {
    if (instr.view) return strides_of_view(model_[instr.op], instr, lie(instr.in[0]), type.shape);
    if (!copies_storage(model_[instr.op])) return type.strides;
    Lie first = lie(instr.in[0]);
    return is_expanded(first.shape, first.strides) ? type.strides : first.strides;
  }

  Lie lie(Slot slot) {
    const TensorType& type = program_[name(slot).type];
    return {type.shape, name(slot).gaps.empty() ? type.strides : name(slot).gaps};
  }

  /// What the storage of the first input has beyond it.
  Bytes spare(const Instr& instr) {
    Lie first = lie(instr.in[0]);
    if (is_expanded(first.shape, first.strides)) return 0;
    const Name& copied = name(instr.in[0]);
    return held_.bytes(copied.storage) - bytes_of(program_[copied.type]);
  }

  /// What lies with gaps, or copies what it does not know the size of, is looked at each time.
  KernelBytes hidden(const Instr& instr, const std::vector<TypeId>& in) {
    bool gaps =
        std::any_of(instr.in.begin(), instr.in.end(), [&](Slot slot) { return !name(slot).gaps.empty(); });
    bool copies = copies_storage(model_[instr.op]);
    if (instr.view || !(gaps || copies)) return hidden_.of(instr, in);
    OpView view = local_view(model_, program_, instr, in);
    if (copies) view.spare = spare(instr);
    find_gaps(instr, view);
    return {retained_of(view), workspace_of(view)};
  }

  void find_gaps(const Instr& instr, OpView& view) {
    std::vector<int32_t> inputs = operands_of(instr);
    for (size_t k = 0; k < inputs.size(); ++k)
      if (Slot slot = instr.in[inputs[k]]; !name(slot).gaps.empty()) {
        view.in_dense[k] = is_dense(program_[name(slot).type].shape, name(slot).gaps);
        view.in_by_place[k] = is_by_place(program_[name(slot).type].shape, name(slot).gaps);
        view.in_turned[k] = is_turned(program_[name(slot).type].shape, name(slot).gaps);
      }
  }

  /// Kernels that add to what is there need nothing beside it.
  void accumulate(const Instr& instr) {
    Name there = name(instr.in[instr.into]);
    if (gradients_.contains(model_[instr.sum ? instr.sum : instr.op].outputs[0]))
      held_.belongs(there.storage, Cause::kGradients);
    if (instr.out[0] == instr.in[instr.into]) return;
    give(instr.out[0], there.storage, there.type);
    name(instr.out[0]).gaps = std::move(there.gaps);
  }

  /// The others keep the storage of their first input.
  void rename(const Instr& instr, int32_t number) {
    Name first = name(instr.in[0]);
    if (instr.kind == InstrKind::kAdd && held_.cause(name(instr.in[1]).storage) == Cause::kGradients)
      held_.belongs(first.storage, Cause::kGradients);
    if (instr.kind == InstrKind::kOptimize) {
      const Name& gradient = name(instr.in[1]);
      held_.belongs(gradient.storage, Cause::kGradients);
      if (!lie_alike(lie(instr.in[1]), lie(instr.in[0])))
        held_.mark(number, bytes_of(program_[gradient.type]));
    }
    if (instr.out[0] == instr.in[0]) return;
    give(instr.out[0], first.storage, first.type);
    name(instr.out[0]).gaps = std::move(first.gaps);
  }

  void note(const CausedBytes& held, int32_t action, int32_t instr) {
    if (action >= 0) memory_.during[action] = std::max(memory_.during[action], held.all);
    if (held.all <= memory_.peak) return;
    memory_.peak = held.all;
    memory_.by_cause = held.by_cause;
    memory_.action = action;
    memory_.instr = instr;
  }

  const Model& model_;
  const Program& program_;
  const RankProgram& rank_;
  const std::set<TensorId>& gradients_;
  Hidden& hidden_;
  BodiesBytes& bodies_;
  HeldBytes held_;
  int32_t microbatch_ = 0;
  RankMemory memory_;
};

}  // namespace

std::string_view name_of(Cause cause) { return kCauseNames[static_cast<int>(cause)]; }

// What a storage turns out to be for is known only when all is walked: each rank is walked twice.
std::vector<RankMemory> memory_of(const Model& model, const Program& program) {
  std::set<TensorId> gradients;
  for (const auto& [parameter, gradient] : model.gradients) gradients.insert(gradient);
  Hidden hidden(model, program);
  BodiesBytes first(program), second(program);
  std::vector<RankMemory> memory;
  for (const RankProgram& rank : program.ranks) {
    RankWalk finds(model, program, rank, gradients, hidden, first);
    finds.run(nullptr);
    memory.push_back(RankWalk(model, program, rank, gradients, hidden, second).run(&finds.causes()));
  }
  return memory;
}

}  // namespace partita::program
