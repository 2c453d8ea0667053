#pragma once

#include <deque>
#include <string>
#include <vector>

#include "program/program.h"
#include "program/routes.h"

namespace partita::program {

/// Where a rank stands: an action and, inside a body, an instruction.
struct At {
  int32_t rank = -1, action = -1, instr = -1;
  auto operator<=>(const At&) const = default;
};

/// One thing that happens. Everything of one rank happens in its own order; a collective happens once, for
/// all its members together; a wait happens when its transfer has both ends.
struct Event {
  enum Kind : uint8_t { kInstr, kCollective, kReturn, kSend, kPostReceive, kWaitReceive, kWaitSend, kFree };
  Kind kind = kInstr;
  std::vector<At> members;  // kCollective: in group order; else one
  int32_t transfer = -1;    // sends, receives and waits: equal for both ends of one transfer, counted from 0
};

/// Steps all ranks through their actions, as far as they can go, one event at a time and always in the same
/// order. A collective happens when every member of its group stands at one of the same kind over the same
/// ordered ranks. The k-th send of (source, destination, tag) meets the k-th receive; sends and posts never
/// block, waits do.
///   Walker walker(program);
///   while (const Event* event = walker.next()) ...;
///   if (!walker.story().empty()) a deadlock;
/// REQUIRES: check(program, model) is empty.
class Walker {
 public:
  explicit Walker(const Program& program);

  /// Null when nobody can move: all are done, or the rest waits for each other.
  const Event* next();
  /// Inside of the body that it stands in a rank goes on from collective to collective, or no longer: what
  /// lies between them happens unseen.
  void skip(int32_t rank, bool skips);

  /// Empty when all ranks are done; else who waits where for whom: "rank 0 waits at action 5 to receive f3 of
  /// micro-batch 1 from rank 1 (tag 2); rank 1 waits in stage1.forward, all_reduce over ranks [1, 3], for
  /// rank 3; ...".
  std::string story() const;

  int32_t transfers() const { return routes_.transfers; }

 private:
  bool step(int32_t rank);
  bool step_body(int32_t rank, const Action& action);
  bool step_collective(int32_t rank, const Instr& instr);
  bool step_transfer(int32_t rank, const Action& action);
  bool step_wait(int32_t rank, const Action& action);

  bool done(int32_t rank) const;
  const Action& action_of(int32_t rank) const;
  /// The collective the rank stands at, or null.
  const Instr* collective_at(int32_t rank) const;
  const std::vector<int32_t>& group_of(int32_t rank, const Instr& instr) const;
  bool meets(int32_t rank, int32_t other) const;
  int32_t transfer_at(int32_t rank) const { return routes_.transfer[rank][at_[rank].action]; }
  void emit(Event::Kind kind, std::vector<At> members, int32_t transfer = -1);
  void wake(int32_t rank);

  /// The first rank that `rank` waits for, -1 where none could help.
  int32_t waits_for(int32_t rank) const;
  std::string clause(int32_t rank) const;

  const Program& program_;
  std::vector<At> at_;
  std::deque<int32_t> ready_;
  std::vector<bool> queued_;
  std::vector<bool> skips_;  // by rank
  Routes routes_;
  std::vector<bool> sent_, posted_;  // by transfer
  Event event_;
};

}  // namespace partita::program
