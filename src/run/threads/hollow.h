#pragma once

#include <deque>

#include "run/cpu/cpu_memory.h"
#include "run/threads/thread_ranks.h"

namespace partita::run {

/// One rank of a Program whose bodies compute nothing: what is sent and received is there from the start,
/// collectives happen on single elements. What is left is the runtime itself.
class HollowRank {
 public:
  /// REQUIRES: `comm` and `memory` outlive it.
  HollowRank(const Program& program, int32_t rank, Communicator& comm, Memory& memory);

  void run(BodyId body, int32_t microbatch);
  void allocate(Slot, int32_t, TypeId) {}
  void free(Slot, int32_t) {}
  TensorView view(Slot slot, int32_t microbatch) { return view_of(slots_[index(slot, microbatch)]); }

  /// Bodies run so far.
  int64_t ran() const { return ran_; }
  HostTensor value(Slot slot, int32_t microbatch) { return memory_.read(view(slot, microbatch)); }

 private:
  struct Meeting {
    InstrKind kind;
    int32_t group;
    bool later;
    Slot made;  // what is waited for
  };
  size_t index(Slot slot, int32_t microbatch) const {
    size_t frame = rank_slots_ + static_cast<size_t>(microbatch) * frame_slots_;
    return (slot.space == Space::kRank ? 0 : frame) + slot.index;
  }
  /// A tensor of its own, zeros.
  TensorSpan take(const TensorType& type);
  void meet(const Meeting& meeting, int32_t microbatch);

  Communicator& comm_;
  Memory& memory_;
  size_t rank_slots_, frame_slots_;
  std::vector<Block> blocks_;
  std::vector<TensorSpan> slots_;  // rank slots, then the frame slots of each micro-batch
  std::vector<std::vector<Meeting>> bodies_;
  std::vector<std::vector<int64_t>> pieces_;  // by group: one element each
  TensorSpan element_, gathered_, kept_;
  int64_t ran_ = 0;
};

/// Runs a Program without computing anything: its actions, messages and clocks are the real ones.
/// Example: HollowRun(program, {.clock = ClockKind::kVirtual, .timing = timing}).step() takes no time, and
/// finished() is what simulate(program, timing, Contention::kOff) says.
class HollowRun {
 public:
  /// REQUIRES: `program` outlives it.
  HollowRun(const Program& program, const RunOptions& options);
  /// The failure, or "". What a rank that never comes back may touch lives on.
  std::string step();

  HollowRank& rank(int32_t rank) { return state_->bodies[rank]; }
  Seconds finished() const { return state_->ranks.finished(); }
  Trace trace() { return state_->ranks.trace(); }

  ~HollowRun();

 private:
  struct State {
    State(const Program& program, const RunOptions& options);
    CpuMemory memory;
    ThreadRanks ranks;
    std::deque<HollowRank> bodies;
  };
  std::unique_ptr<State> state_;
};

}  // namespace partita::run
