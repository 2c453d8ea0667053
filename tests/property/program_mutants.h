#pragma once

#include <algorithm>
#include <optional>
#include <set>

#include "program/program.h"
#include "program/words.h"

namespace partita::program {

/// A Program with one fault, or nothing where this Program has no place for it. Every mutant still runs or
/// hangs: none is malformed.
using Mutant = std::optional<Program>;

namespace mutants {

/// The first instruction of a kind that a test accepts: (body, instruction), or (-1, -1).
template <class Accept>
std::pair<int, int> find(const Program& program, InstrKind kind, Accept accept) {
  for (size_t b = 0; b < program.bodies.size(); ++b)
    for (size_t i = 0; i < program.bodies[b].instrs.size(); ++i) {
      const Instr& instr = program.bodies[b].instrs[i];
      if (instr.kind == kind && accept(instr)) return {static_cast<int>(b), static_cast<int>(i)};
    }
  return {-1, -1};
}
inline std::pair<int, int> find(const Program& program, InstrKind kind) {
  return find(program, kind, [](const Instr&) { return true; });
}

/// What an instruction in place changes.
inline Slot& target(Instr& instr) { return instr.in[std::max(instr.into, 0)]; }

/// Does it add something to what is there?
inline bool adds(const Instr& instr) { return instr.kind == InstrKind::kAdd || instr.into >= 0; }

/// Keeps names and lifetimes of an instruction in place, but does nothing.
inline void make_idle(Body& body, int i) {
  Instr& instr = body.instrs[i];
  if (instr.out[0] == target(instr)) {
    std::vector<Slot> drop = instr.drop;
    body.instrs.erase(body.instrs.begin() + i);
    if (i > 0) body.instrs[i - 1].drop.insert(body.instrs[i - 1].drop.end(), drop.begin(), drop.end());
    return;
  }
  instr = {.kind = InstrKind::kMove,
           .in = {target(instr)},
           .out = instr.out,
           .types = instr.types,
           .drop = instr.drop};
}

/// Gives one action of one rank a body of its own.
inline Body& own_body(Program& program, size_t rank, size_t action) {
  Action& run = program.ranks[rank].actions[action];
  program.bodies.push_back(program[run.body]);
  run.body = BodyId{static_cast<int32_t>(program.bodies.size()) - 1};
  return program.bodies.back();
}

inline bool accumulates(const Body& body, Slot into) {
  return std::any_of(body.instrs.begin(), body.instrs.end(),
                     [&](Instr instr) { return adds(instr) && (into.index < 0 || target(instr) == into); });
}

/// The last action of a rank that accumulates (into this slot), -1 if none.
inline int last_accumulation(const Program& program, size_t rank, Slot into = {}) {
  const std::vector<Action>& actions = program.ranks[rank].actions;
  for (size_t a = actions.size(); a-- > 0;)
    if (actions[a].kind == ActionKind::kRun && accumulates(program[actions[a].body], into))
      return static_cast<int>(a);
  return -1;
}

inline int first_of(const Body& body, InstrKind kind) {
  for (size_t i = 0; i < body.instrs.size(); ++i)
    if (body.instrs[i].kind == kind) return static_cast<int>(i);
  return -1;
}

inline int first_addition(const Body& body) {
  return static_cast<int>(std::find_if(body.instrs.begin(), body.instrs.end(), adds) - body.instrs.begin());
}

/// In all shapes of the body alike: the ranks still meet in the same order.
inline Mutant dropped_all_reduce(Program program) {
  auto [b, i] = find(program, InstrKind::kAllReduce);
  if (b < 0) return {};
  std::string name = program.bodies[b].name;
  for (Body& body : program.bodies)
    if (body.name == name && body.instrs[i].kind == InstrKind::kAllReduce) make_idle(body, i);
  return program;
}

/// The same number of other ranks where the program has such a group, else each rank alone.
inline Mutant wrong_group(Program program) {
  auto [b, i] = find(program, InstrKind::kAllReduce);
  if (b < 0) return {};
  int32_t old = program.bodies[b].instrs[i].group;
  for (RankProgram& rank : program.ranks) {
    if (static_cast<size_t>(old) >= rank.groups.size()) continue;
    for (size_t g = 0; g < rank.groups.size(); ++g)
      if (rank.groups[g].size() == rank.groups[old].size() && rank.groups[g] != rank.groups[old]) {
        for (Body& body : program.bodies)
          if (body.name == program.bodies[b].name) body.instrs[i].group = static_cast<int32_t>(g);
        return program;
      }
  }
  for (size_t r = 0; r < program.ranks.size(); ++r)
    if (static_cast<size_t>(old) < program.ranks[r].groups.size())
      program.ranks[r].groups[old] = {static_cast<int32_t>(r)};
  return program;
}

/// The members of a gather in another order, the same on all of them.
inline Mutant permuted_gather(Program program) {
  auto [b, i] = find(program, InstrKind::kAllGather);
  if (b < 0) return {};
  int32_t group = program.bodies[b].instrs[i].group;
  for (RankProgram& rank : program.ranks)
    if (static_cast<size_t>(group) < rank.groups.size())
      std::reverse(rank.groups[group].begin(), rank.groups[group].end());
  return program;
}

inline Mutant not_accumulated(Program program) {
  int action = last_accumulation(program, 0);
  if (action < 0) return {};
  Body& body = own_body(program, 0, action);
  make_idle(body, first_addition(body));
  return program;
}

inline Mutant accumulated_twice(Program program) {
  int action = last_accumulation(program, 0);
  if (action < 0) return {};
  Body& body = own_body(program, 0, action);
  int i = first_addition(body);
  Instr again = body.instrs[i];
  body.instrs[i].drop.clear();
  Slot sum = target(again);
  if (again.out[0] != sum) body.instrs[i].drop = {sum}, std::erase(again.drop, sum);
  target(again) = again.out[0];
  body.instrs.insert(body.instrs.begin() + i + 1, again);
  return program;
}

inline Mutant wrong_scale(Program program) {
  for (Body& body : program.bodies)
    for (Instr& instr : body.instrs)
      for (Arg& arg : instr.args)
        if (arg.kind == Arg::kFloat && arg.number != 0) {
          arg.number *= 2;
          return program;
        }
  return {};
}

/// What two receives from one peer bring lands in each other's slots: their channels are exchanged, or where
/// both use one channel, their order. Of the last rank that receives from one before it: it can go on.
inline Mutant swapped_receives(Program program) {
  for (size_t r = program.ranks.size(); r-- > 0;) {
    std::vector<Action>& actions = program.ranks[r].actions;
    for (size_t a = 0; a < actions.size(); ++a)
      for (size_t b = a + 1; b < actions.size(); ++b) {
        Action x = actions[a], y = actions[b];
        bool both = x.kind == ActionKind::kPostReceive && y.kind == ActionKind::kPostReceive &&
                    x.type == y.type && x.peer == y.peer && x.peer < static_cast<int32_t>(r);
        if (!both) continue;
        if (x.tag == y.tag)
          std::rotate(actions.begin() + static_cast<int64_t>(a), actions.begin() + static_cast<int64_t>(b),
                      actions.begin() + static_cast<int64_t>(b) + 1);
        for (Action& action : actions) {
          if (action.kind != ActionKind::kPostReceive && action.kind != ActionKind::kWaitReceive) continue;
          bool first = action.slot == x.slot && action.microbatch == x.microbatch && action.tag == x.tag;
          bool second = action.slot == y.slot && action.microbatch == y.microbatch && action.tag == y.tag;
          if (first || second) action.tag = first ? y.tag : x.tag;
        }
        return program;
      }
  }
  return {};
}

/// The last instruction of a kind does nothing, in all shapes of its body alike.
template <InstrKind kKind>
Mutant left_out(Program program) {
  std::string name;
  for (const Body& body : program.bodies)
    if (first_of(body, kKind) >= 0) name = body.name;
  if (name.empty()) return {};
  for (Body& body : program.bodies) {
    int last = -1;
    for (size_t i = 0; i < body.instrs.size(); ++i)
      if (body.name == name && body.instrs[i].kind == kKind) last = static_cast<int>(i);
    if (last >= 0) make_idle(body, last);
  }
  return program;
}

/// The first instruction of a kind that works in one slot happens twice.
template <InstrKind kKind>
Mutant done_twice(Program program) {
  auto [b, i] = find(program, kKind);
  if (b < 0) return {};
  Body& body = program.bodies[b];
  Instr again = body.instrs[i];
  body.instrs[i].drop.clear();
  body.instrs.insert(body.instrs.begin() + i, again);
  body.instrs[i].drop.clear();
  return program;
}

inline bool updates_with(const Program& program, Slot gradient) {
  return find(program, InstrKind::kOptimize, [&](const Instr& instr) {
           return instr.in[1] == gradient;
         }).first >= 0;
}

/// The sum of a gradient over ranks comes before the last micro-batch was added.
inline Mutant reduced_too_early(Program program) {
  auto [b, i] = find(program, InstrKind::kAllReduce, [&](const Instr& instr) {
    return instr.in[0].space == Space::kRank && last_accumulation(program, 0, instr.in[0]) >= 0 &&
           (updates_with(program, instr.in[0]) || updates_with(program, instr.out[0]));
  });
  if (b < 0) return {};
  Instr early = program.bodies[b].instrs[i];
  std::vector<int> before;
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    before.push_back(last_accumulation(program, r, early.in[0]));
    if (before.back() < 0) return {};
  }
  std::string name = program.bodies[b].name;
  for (Body& body : program.bodies)
    if (body.name == name) make_idle(body, i);
  early.out = early.in;
  early.drop.clear();
  program.bodies.push_back({.name = "early", .instrs = {early}});
  BodyId body{static_cast<int32_t>(program.bodies.size()) - 1};
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    std::vector<Action>& actions = program.ranks[r].actions;
    actions.insert(actions.begin() + before[r], {.kind = ActionKind::kRun, .body = body});
  }
  return program;
}

/// A value dies at its first reader instead of its last.
inline Mutant freed_too_early(Program program) {
  for (Body& body : program.bodies)
    for (size_t last = 0; last < body.instrs.size(); ++last)
      for (Slot slot : body.instrs[last].drop)
        for (size_t first = 0; first < last; ++first) {
          Instr& reader = body.instrs[first];
          bool reads = std::find(reader.in.begin(), reader.in.end(), slot) != reader.in.end();
          bool is_made =
              std::any_of(body.instrs.begin() + static_cast<int64_t>(first),
                          body.instrs.begin() + static_cast<int64_t>(last), [&](const Instr& instr) {
                            return std::find(instr.out.begin(), instr.out.end(), slot) != instr.out.end();
                          });
          const std::vector<Slot>& in = body.instrs[last].in;
          if (!reads || is_made || std::find(in.begin(), in.end(), slot) == in.end()) continue;
          reader.drop.push_back(slot);
          std::erase(body.instrs[last].drop, slot);
          return program;
        }
  return {};
}

/// A rank sends only after all that it waits for: its peers wait for it.
inline Mutant late_send(Program program) {
  for (RankProgram& rank : program.ranks) {
    auto& actions = rank.actions;
    auto kind_is = [](ActionKind kind) {
      return [kind](const Action& action) { return action.kind == kind; };
    };
    auto send = std::find_if(actions.begin(), actions.end(), kind_is(ActionKind::kSend));
    auto wait = std::find_if(actions.rbegin(), actions.rend(), kind_is(ActionKind::kWaitReceive));
    if (send == actions.end() || wait == actions.rend() || wait.base() <= send) continue;
    // Its wait and its free go with it.
    Action late = *send;
    std::stable_partition(send, wait.base(), [&](const Action& action) {
      bool follows = action.kind == ActionKind::kWaitSend || action.kind == ActionKind::kFree;
      bool same = action.slot == late.slot && action.microbatch == late.microbatch;
      return !(same && (action == late || follows));
    });
    return program;
  }
  return {};
}

/// One rank leaves out a collective.
inline Mutant missing_on_one_rank(Program program) {
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (size_t a = 0; a < program.ranks[r].actions.size(); ++a) {
      const Action& action = program.ranks[r].actions[a];
      if (action.kind != ActionKind::kRun) continue;
      std::vector<size_t> meets;
      const Body& body = program[action.body];
      for (size_t i = 0; i < body.instrs.size(); ++i)
        if (row_of(body.instrs[i].kind).collective) meets.push_back(i);
      if (meets.empty()) continue;
      Body& own = own_body(program, r, a);
      make_idle(own, static_cast<int>(meets[0]));
      return program;
    }
  return {};
}

}  // namespace mutants

struct MutantRow {
  const char* name;
  Mutant (*make)(Program program);
  const char* says;  // a part of some sentence that the certificate must say
};
inline constexpr MutantRow kMutants[] = {
    {"dropped_all_reduce", mutants::dropped_all_reduce, "partial sum"},
    {"wrong_group", mutants::wrong_group, ""},
    {"permuted_gather", mutants::permuted_gather, "order of the group"},
    {"not_accumulated", mutants::not_accumulated, ""},
    {"accumulated_twice", mutants::accumulated_twice, "count twice"},
    {"wrong_scale", mutants::wrong_scale, "needs"},
    {"swapped_receives", mutants::swapped_receives, ", micro-batch "},
    {"reduced_too_early", mutants::reduced_too_early, "partial sum"},
    {"freed_too_early", mutants::freed_too_early, "freed too early"},
    {"late_send", mutants::late_send, "deadlock: rank"},
    {"missing_on_one_rank", mutants::missing_on_one_rank, ""},
};

}  // namespace partita::program
