#pragma once

#include <functional>
#include <set>
#include <unordered_map>

#include "model/row.h"
#include "program/effects.h"
#include "program/held_bytes.h"
#include "program/view_strides.h"

namespace partita::program {

/// What kernels take beside their outputs: until the first of these goes, and during the call.
struct KernelBytes {
  Bytes retained = 0, workspace = 0;
};

/// What the walks through the ranks of one Program share.
class ProgramBytes {
 public:
  /// REQUIRES: both outlive it.
  ProgramBytes(const Model& model, const Program& program);

  const Model& model() const { return model_; }
  const Program& program() const { return program_; }
  bool is_gradient(TensorId tensor) const { return gradients_.contains(tensor); }
  /// What a call takes; ranks and micro-batches that make it on the same types share it.
  const KernelBytes& kernel(const Instr& instr, const std::vector<TypeId>& in);

 private:
  struct Entry {
    bool known = false;
    std::vector<TypeId> in;
    KernelBytes bytes;
  };
  const Model& model_;
  const Program& program_;
  std::set<TensorId> gradients_;
  std::unordered_map<const Instr*, Entry> entries_;
};

/// What one rank holds while it goes through its loads, actions and instructions: the one place that says
/// what they do to its bytes. Who walks it decides what is looked at, and what is known already.
///   bytes.enter(0); bytes.open(body);
///   for each instruction: bytes.make(instr, number), outputs and inputs are there; then bytes.drop(instr)
class RankBytes {
 public:
  using Name = HeldBytes::Name;
  /// Is told all bytes held, at each moment that can be a peak.
  using Observer = std::function<void(Bytes held)>;

  /// REQUIRES: both outlive it.
  RankBytes(ProgramBytes& shared, const RankProgram& rank, Observer observe = {});

  /// The micro-batch of frame slots from here on.
  void enter(int32_t microbatch) { microbatch_ = microbatch; }
  /// Fresh local slots, for a body that is walked.
  void open(const Body& body) { held_.enter(body, {}, microbatch_); }
  void load(const Load& load);
  void receive(const Action& action);
  void free(const Action& action) { held_.drop(action.slot, microbatch_); }
  void make(const Instr& instr, int32_t number);
  void drop(const Instr& instr);

  Name& name(Slot slot) { return held_.name(slot, microbatch_); }
  HeldBytes& held() { return held_; }

 private:
  void give(Slot slot, int32_t storage, TypeId type) { held_.give(slot, microbatch_, storage, type); }
  void mark(int32_t number, Bytes extra);
  void allocate(const Instr& instr, Cause cause);
  void compute(const Instr& instr, int32_t number);
  Shape strides_of_output(const Instr& instr, const TensorType& type);
  Lie lie(Slot slot);
  Bytes spare(const Instr& instr);
  KernelBytes kernel(const Instr& instr, const std::vector<TypeId>& in);
  void find_gaps(const Instr& instr, OpView& view);
  void accumulate(const Instr& instr);
  void rename(const Instr& instr, int32_t number);

  ProgramBytes& shared_;
  const Model& model_;
  const Program& program_;
  Observer observe_;
  HeldBytes held_;
  int32_t microbatch_ = 0;
};

}  // namespace partita::program
