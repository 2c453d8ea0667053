#include "lower/start_sums.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lower/names.h"
#include "program/walk.h"
#include "program/words.h"

namespace partita::lower {
namespace {

/// A collective of a rank's last body that can start earlier.
struct Move {
  int32_t from = 0;                // instruction of the last body
  int32_t action = 0, after = -1;  // the run and the instruction that it starts after
  bool waited = false;             // before the next one of its group starts
};

/// Instructions of a body that come after others, by number.
using Additions = std::map<int32_t, std::vector<Instr>>;

class Mover {
 public:
  explicit Mover(Program& program) : program_(program), touched_(program.bodies.size()) {
    for (const RankProgram& rank : program.ranks) first_slot_ = std::max(first_slot_, rank.rank_slots);
  }

  /// False: there is nothing to move.
  bool run() {
    find_moves();
    if (std::all_of(moves_.begin(), moves_.end(), [](const auto& moves) { return moves.empty(); }))
      return false;
    agree();
    bool any = false;
    for (size_t r = 0; r < program_.ranks.size(); ++r) {
      any |= !moves_[r].empty();
      if (!moves_[r].empty()) move(r);
    }
    return any;
  }

 private:
  using Touched = std::map<Slot, int32_t>;

  // Where each storage that has a name outside of the body is touched last.
  const Touched& touched(BodyId body) {
    std::optional<Touched>& known = touched_[body.value];
    if (!known) known = find_touched(program_[body].instrs);
    return *known;
  }

  static Touched find_touched(const std::vector<Instr>& instrs) {
    Names names;
    std::map<Slot, int32_t> last;  // by root
    std::set<Slot> outside;
    for (size_t i = 0; i < instrs.size(); ++i) {
      auto touch = [&](Slot slot) {
        last[names.root(slot)] = static_cast<int32_t>(i);
        if (slot.space != Space::kLocal) outside.insert(slot);
      };
      for_each_slot(instrs[i], touch);
      names.make(instrs[i]);
      for_each_slot(instrs[i], touch);
    }
    Touched out;
    for (Slot slot : outside) out[slot] = last.at(names.root(slot));
    return out;
  }

  int32_t last_run(size_t r) const {
    const std::vector<Action>& actions = program_.ranks[r].actions;
    for (size_t a = actions.size(); a-- > 0;)
      if (actions[a].kind == ActionKind::kRun) return static_cast<int32_t>(a);
    return -1;
  }

  void find_moves() {
    moves_.resize(program_.ranks.size());
    for (size_t r = 0; r < program_.ranks.size(); ++r) {
      int32_t last = last_run(r);
      if (last < 0) continue;
      const std::vector<Instr>& instrs = program_[program_.ranks[r].actions[last].body].instrs;
      std::set<Slot> seen;
      for (size_t i = 0; i < instrs.size(); ++i) {
        const Instr& instr = instrs[i];
        if (row_of(instr.kind).collective && !instr.later && !seen.contains(instr.in[0]) &&
            !seen.contains(instr.out[0]))
          if (std::optional<Move> move = place(r, last, instr)) {
            move->from = static_cast<int32_t>(i);
            moves_[r].push_back(*move);
          }
        for_each_slot(instr, [&](Slot slot) { seen.insert(slot); });
      }
    }
  }

  // The last run before that touches the input. Nobody else may: a message of it would be of the old value.
  std::optional<Move> place(size_t r, int32_t last, const Instr& instr) {
    const std::vector<Action>& actions = program_.ranks[r].actions;
    Slot in = instr.in[0], out = instr.out[0];
    if (in.space != Space::kRank || out.space == Space::kFrame) return std::nullopt;
    for (int32_t a = last; a-- > 0;) {
      const Action& action = actions[a];
      bool runs = action.kind == ActionKind::kRun;
      if (!runs && (action.slot == in || action.slot == out)) return std::nullopt;
      if (!runs) continue;
      const Touched& there = touched(action.body);
      if (out != in && there.contains(out)) return std::nullopt;
      if (auto found = there.find(in); found != there.end()) return Move{.action = a, .after = found->second};
    }
    return std::nullopt;
  }

  // All members of a meeting move it, or none.
  void agree() {
    std::set<std::pair<int32_t, int32_t>> agreed;  // rank, instruction
    Walker walker(program_);
    while (const Event* event = walker.next()) {
      if (event->kind == Event::kInstr) walker.skip(event->members[0].rank, true);
      if (event->kind != Event::kCollective) continue;
      const std::vector<At>& members = event->members;
      if (std::all_of(members.begin(), members.end(), [&](const At& at) { return moves_at(at); }))
        for (const At& at : members) agreed.insert({at.rank, at.instr});
    }
    for (size_t r = 0; r < moves_.size(); ++r)
      std::erase_if(moves_[r], [&](const Move& move) {
        return !agreed.contains({static_cast<int32_t>(r), move.from});
      });
  }

  bool moves_at(const At& at) const {
    return at.action == last_run(at.rank) &&
           std::any_of(moves_[at.rank].begin(), moves_[at.rank].end(),
                       [&](const Move& move) { return move.from == at.instr; });
  }

  void move(size_t r) {
    RankProgram& rank = program_.ranks[r];
    std::vector<Move>& moves = moves_[r];
    Action& last = rank.actions[last_run(r)];
    Body end = program_[last.body];
    for (const Move& move : moves) keep_outside(end, move.from, rank);
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
      return std::tie(a.action, a.after) < std::tie(b.action, b.after);
    });
    for (auto& [action, added] : additions(moves, end))
      rank.actions[action].body = with(rank.actions[action].body, added);
    for (const Move& move : moves) leave_wait(end.instrs[move.from], move.waited);
    std::erase_if(end.instrs,
                  [](const Instr& instr) { return instr.kind == InstrKind::kWait && instr.in.empty(); });
    last.body = known(last.body, std::move(end));
  }

  // What it makes was inside of the last body and now comes from outside.
  void keep_outside(Body& body, int32_t from, RankProgram& rank) const {
    Slot old = body.instrs[from].out[0];
    if (old.space != Space::kLocal) return;
    Slot fresh{Space::kRank, std::max(first_slot_, rank.rank_slots)};
    rank.rank_slots = fresh.index + 1;
    for (Instr& instr : body.instrs)
      for (std::vector<Slot>* list : {&instr.in, &instr.out, &instr.drop})
        std::replace(list->begin(), list->end(), old, fresh);
  }

  std::map<int32_t, Additions> additions(std::vector<Move>& moves, const Body& end) const {
    std::map<int32_t, Additions> out;
    std::map<int32_t, Move*> under_way;  // by group
    for (Move& move : moves) {
      Instr start = end.instrs[move.from];
      std::vector<Instr>& here = out[move.action][move.after];
      if (!row_of(start.kind).in_place) {
        if (Move* before = std::exchange(under_way[start.group], &move)) {
          before->waited = true;
          here.push_back(wait_for(end.instrs[before->from]));
        }
      }
      start.later = true;
      start.drop.clear();
      here.push_back(std::move(start));
    }
    return out;
  }

  static Instr wait_for(const Instr& instr) {
    return {.kind = InstrKind::kWait, .in = instr.out, .drop = instr.drop};
  }

  static void leave_wait(Instr& instr, bool waited) {
    instr = waited ? Instr{.kind = InstrKind::kWait} : wait_for(instr);
  }

  BodyId with(BodyId old, const Additions& added) {
    Body body = program_[old];
    body.instrs.clear();
    const std::vector<Instr>& instrs = program_[old].instrs;
    for (size_t i = 0; i < instrs.size(); ++i) {
      body.instrs.push_back(instrs[i]);
      if (auto found = added.find(static_cast<int32_t>(i)); found != added.end())
        body.instrs.insert(body.instrs.end(), found->second.begin(), found->second.end());
    }
    return known(old, std::move(body));
  }

  /// The body made of `old` that is equal to this one.
  BodyId known(BodyId old, Body body) {
    for (BodyId one : made_[old])
      if (program_[one] == body) return one;
    program_.bodies.push_back(std::move(body));
    made_[old].push_back(BodyId{static_cast<int32_t>(program_.bodies.size()) - 1});
    return made_[old].back();
  }

  Program& program_;
  std::vector<std::optional<Touched>> touched_;  // by body, where it was asked for
  std::vector<std::vector<Move>> moves_;         // by rank
  std::map<BodyId, std::vector<BodyId>> made_;
  int32_t first_slot_ = 0;
};

}  // namespace

Program start_sums(Program program) {
  while (Mover(program).run()) continue;
  return program;
}

}  // namespace partita::lower
