#include "program/memory.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "program/local_view.h"
#include "program/slot_table.h"
#include "program/view_strides.h"

namespace partita {
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

/// Walks one rank twice: what a storage turns out to be for is known only at the end of the first time.
class RankWalk {
 public:
  RankWalk(const Model& model, const Program& program, const RankProgram& rank, Hidden& hidden)
      : model_(model), program_(program), rank_(rank), hidden_(hidden), names_(rank, program.microbatches) {
    for (const auto& [parameter, gradient] : model.gradients) gradients_.insert(gradient);
  }

  RankMemory run() {
    walk();
    for (const Result& result : rank_.results)
      if (result.kind == Result::kGradient) belongs(name(result.slot).storage, Cause::kGradients);
    std::vector<Storage> known = std::move(storages_);
    storages_.clear();
    causes_ = &known;
    walk();
    return std::move(memory_);
  }

 private:
  struct Storage {
    Bytes bytes = 0;
    int names = 0;
    Cause cause = Cause::kTemporary;
  };
  struct Name {
    int storage = -1;
    TypeId type;
    Shape gaps;  // strides of a view that has others than its type says
  };

  Name& name(Slot slot) { return names_.at(slot, microbatch_); }

  void walk() {
    memory_ = {};
    held_.fill(0);
    current_ = 0;
    names_ = SlotTable<Name>(rank_, program_.microbatches);
    for (const Load& load : rank_.loads) take_load(load);
    mark(-1, -1, 0);
    for (size_t a = 0; a < rank_.actions.size(); ++a) {
      memory_.during.push_back(current_);
      act(rank_.actions[a], static_cast<int32_t>(a));
    }
  }

  void take_load(const Load& load) {
    Role role = model_[load.tensor].role;
    Cause cause = load.state >= 0             ? Cause::kOptimizer
                  : role == Role::kBatchInput ? Cause::kActivations
                                              : Cause::kParameters;
    microbatch_ = load.microbatch;
    give(load.slot, allocate(bytes_of(program_[load.type]), cause), load.type);
  }

  void act(const Action& action, int32_t number) {
    microbatch_ = action.microbatch;
    if (action.kind == ActionKind::kFree) drop(action.slot);
    if (action.kind == ActionKind::kPostReceive) {
      give(action.slot, allocate(bytes_of(program_[action.type]), Cause::kCommunication), action.type);
      mark(number, -1, 0);
    }
    if (action.kind != ActionKind::kRun) return;
    const Body& body = program_[action.body];
    names_.open(body);
    for (size_t i = 0; i < body.instrs.size(); ++i) execute(body.instrs[i], number, static_cast<int32_t>(i));
  }

  void execute(const Instr& instr, int32_t action, int32_t number) {
    switch (instr.kind) {
      case InstrKind::kCompute:
        compute(instr, action, number);
        break;
      case InstrKind::kAllGather:
      case InstrKind::kReduceScatter:
        make(instr, Cause::kCommunication);
        break;
      case InstrKind::kSlice:
      case InstrKind::kZeros:
      case InstrKind::kCast:
      case InstrKind::kConcat:
        make(instr, Cause::kTemporary);
        break;
      default:
        rename(instr, action, number);
    }
    mark(action, number, 0);
    for (Slot slot : instr.drop) drop(slot);
  }

  void make(const Instr& instr, Cause cause) {
    give(instr.out[0], allocate(bytes_of(program_[instr.types[0]]), cause), instr.types[0]);
  }

  void compute(const Instr& instr, int32_t action, int32_t number) {
    if (instr.into >= 0) return accumulate(instr);
    std::vector<TypeId> in;
    for (Slot slot : instr.in) in.push_back(name(slot).type);
    auto [retained, workspace] = hidden(instr, in);
    Bytes unkept = 0;
    for (size_t o = 0; o < instr.out.size(); ++o) {
      if (!instr.types[o]) continue;
      Bytes bytes = instr.view ? 0 : bytes_of(program_[instr.types[o]]) + (o == 0 ? retained : 0);
      if (instr.out[o].index < 0) {
        unkept += bytes;
        continue;
      }
      bool gradient = gradients_.contains(model_[instr.op].outputs[o]);
      int storage = instr.view ? name(instr.in[0]).storage
                               : allocate(bytes, gradient ? Cause::kGradients : Cause::kTemporary);
      if (!instr.view) {
        give(instr.out[o], storage, instr.types[o]);
        continue;
      }
      const Shape& shape = program_[instr.types[o]].shape;
      Shape strides = strides_of_view(model_[instr.op], instr, lie(instr.in[0]), shape);
      give(instr.out[o], storage, instr.types[o]);
      if (strides != program_[instr.types[o]].strides) name(instr.out[o]).gaps = std::move(strides);
    }
    mark(action, number, unkept + workspace);
  }

  Lie lie(Slot slot) {
    const TensorType& type = program_[name(slot).type];
    return {type.shape, name(slot).gaps.empty() ? type.strides : name(slot).gaps};
  }

  /// What lies with gaps is looked at each time.
  KernelBytes hidden(const Instr& instr, const std::vector<TypeId>& in) {
    bool gaps =
        std::any_of(instr.in.begin(), instr.in.end(), [&](Slot slot) { return !name(slot).gaps.empty(); });
    if (instr.view || !gaps) return hidden_.of(instr, in);
    OpView view = local_view(model_, program_, instr, in);
    find_gaps(instr, view);
    return {retained_of(view), workspace_of(view)};
  }

  void find_gaps(const Instr& instr, OpView& view) {
    std::vector<int32_t> inputs = operands_of(instr);
    for (size_t k = 0; k < inputs.size(); ++k)
      if (Slot slot = instr.in[inputs[k]]; !name(slot).gaps.empty())
        view.in_dense[k] = is_dense(program_[name(slot).type].shape, name(slot).gaps);
  }

  /// Kernels that add to what is there need nothing beside it.
  void accumulate(const Instr& instr) {
    Name there = name(instr.in[instr.into]);
    if (gradients_.contains(model_[instr.sum ? instr.sum : instr.op].outputs[0]))
      belongs(there.storage, Cause::kGradients);
    if (instr.out[0] == instr.in[instr.into]) return;
    give(instr.out[0], there.storage, there.type);
    name(instr.out[0]).gaps = std::move(there.gaps);
  }

  /// The others keep the storage of their first input.
  void rename(const Instr& instr, int32_t action, int32_t number) {
    Name first = name(instr.in[0]);
    if (instr.kind == InstrKind::kAdd && cause(name(instr.in[1]).storage) == Cause::kGradients)
      belongs(first.storage, Cause::kGradients);
    if (instr.kind == InstrKind::kOptimize) {
      const Name& gradient = name(instr.in[1]);
      belongs(gradient.storage, Cause::kGradients);
      if (!lie_alike(lie(instr.in[1]), lie(instr.in[0])))
        mark(action, number, bytes_of(program_[gradient.type]));
    }
    if (instr.out[0] == instr.in[0]) return;
    give(instr.out[0], first.storage, first.type);
    name(instr.out[0]).gaps = std::move(first.gaps);
  }

  int allocate(Bytes bytes, Cause cause) {
    int id = static_cast<int>(storages_.size());
    storages_.push_back({bytes, 0, causes_ ? (*causes_)[id].cause : cause});
    held_[static_cast<int>(storages_[id].cause)] += bytes;
    current_ += bytes;
    return id;
  }

  Cause cause(int storage) const { return storages_[storage].cause; }

  void belongs(int storage, Cause cause) {
    if (!causes_) storages_[storage].cause = cause;
  }

  void give(Slot slot, int storage, TypeId type) {
    name(slot) = {storage, type, {}};
    ++storages_[storage].names;
    if (slot.space != Space::kLocal && cause(storage) == Cause::kTemporary)
      belongs(storage, Cause::kActivations);
  }

  void drop(Slot slot) {
    Storage& storage = storages_[name(slot).storage];
    name(slot) = {};
    if (--storage.names > 0) return;
    held_[static_cast<int>(storage.cause)] -= storage.bytes;
    current_ -= storage.bytes;
  }

  /// Notes the bytes held now, and `extra` beside them.
  void mark(int32_t action, int32_t instr, Bytes extra) {
    Bytes now = current_ + extra;
    if (action >= 0) memory_.during[action] = std::max(memory_.during[action], now);
    if (now <= memory_.peak) return;
    memory_.peak = now;
    memory_.by_cause = held_;
    memory_.by_cause[static_cast<int>(Cause::kTemporary)] += extra;
    memory_.action = action;
    memory_.instr = instr;
  }

  const Model& model_;
  const Program& program_;
  const RankProgram& rank_;
  Hidden& hidden_;
  std::set<TensorId> gradients_;
  const std::vector<Storage>* causes_ = nullptr;
  std::vector<Storage> storages_;
  SlotTable<Name> names_;
  std::array<Bytes, kCauses> held_{};
  Bytes current_ = 0;
  int32_t microbatch_ = 0;
  RankMemory memory_;
};

}  // namespace

std::string_view name_of(Cause cause) { return kCauseNames[static_cast<int>(cause)]; }

std::vector<RankMemory> memory_of(const Model& model, const Program& program) {
  std::vector<RankMemory> memory;
  Hidden hidden(model, program);
  for (const RankProgram& rank : program.ranks)
    memory.push_back(RankWalk(model, program, rank, hidden).run());
  return memory;
}

}  // namespace partita
