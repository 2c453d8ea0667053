#pragma once

#include <random>

#include "program_mutants.h"

namespace partita::program {

/// Changes one thing of a Program at random: what an instruction reads, does, frees or is; who speaks to
/// whom; what is loaded where. The result may be malformed, wrong, or as right as before.
class RandomMutation {
 public:
  explicit RandomMutation(uint64_t seed) : random_(seed) {}

  Program operator()(Program program) {
    program_ = &program;
    size_t rank = pick(program.ranks.size());
    if (chance(5)) {
      change_rank(program.ranks[rank]);
      return program;
    }
    std::vector<size_t> runs;
    const std::vector<Action>& actions = program.ranks[rank].actions;
    for (size_t a = 0; a < actions.size(); ++a)
      if (actions[a].kind == ActionKind::kRun && !program[actions[a].body].instrs.empty()) runs.push_back(a);
    if (chance(3))
      change_actions(program.ranks[rank].actions);
    else if (chance(2))
      change_body(mutants::own_body(program, rank, runs[pick(runs.size())]));
    else
      change_body(program.bodies[actions[runs[pick(runs.size())]].body.value]);
    return program;
  }

 private:
  size_t pick(size_t count) {
    return count == 0 ? 0 : std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }
  bool chance(int one_in) { return pick(one_in) == 0; }

  void change_body(Body& body) {
    if (body.instrs.empty()) return;
    size_t i = pick(body.instrs.size());
    auto at = body.instrs.begin() + static_cast<int64_t>(i);
    switch (pick(9)) {
      case 0:
        if (i + 1 < body.instrs.size()) std::swap(body.instrs[i], body.instrs[i + 1]);
        return;
      case 1:
        body.instrs.insert(at, *at);
        return;
      case 2:
        body.instrs.erase(at);
        return;
      case 3:
        if (i > 0 && !at->drop.empty()) {
          body.instrs[i - 1].drop.push_back(at->drop.back());
          at->drop.pop_back();
        }
        return;
      case 4:
        if (!at->in.empty() && !at->out.empty() && at->out[0].index >= 0)
          mutants::make_idle(body, static_cast<int>(i));
        return;
      default:
        change_instr(*at, body);
    }
  }

  void change_instr(Instr& instr, const Body& body) {
    const Instr& other = body.instrs[pick(body.instrs.size())];
    switch (pick(8)) {
      case 0:
        if (!instr.in.empty() && !other.in.empty())
          instr.in[pick(instr.in.size())] = other.in[pick(other.in.size())];
        return;
      case 1:
        if (instr.in.size() > 1) std::swap(instr.in[pick(instr.in.size())], instr.in[pick(instr.in.size())]);
        return;
      case 2:
        if (!instr.in.empty() && !other.out.empty() && other.out[0].index >= 0)
          instr.in[pick(instr.in.size())] = other.out[0];
        return;
      case 3:
        if (!instr.args.empty()) change_argument(instr.args[pick(instr.args.size())]);
        return;
      case 4:
        if (instr.kind == InstrKind::kSlice) instr.begin += chance(2) ? 1 : -1;
        return;
      case 5:
        if (instr.pieces.size() > 1) std::swap(instr.pieces.front(), instr.pieces.back());
        return;
      case 6:
        if (instr.group >= 0) instr.group = instr.group == 0 ? 1 : 0;
        return;
      default:
        if (!instr.types.empty()) instr.types[0] = TypeId{static_cast<int32_t>(pick(program_->types.size()))};
    }
  }

  void change_argument(Arg& arg) {
    if (arg.kind == Arg::kInt) arg.integer += chance(2) ? 1 : -1;
    if (arg.kind == Arg::kFloat) arg.number *= 2;
    if (arg.kind == Arg::kBool) arg.integer = !arg.integer;
    if (arg.kind == Arg::kList && !arg.items.empty()) change_argument(arg.items[pick(arg.items.size())]);
  }

  void change_actions(std::vector<Action>& actions) {
    size_t a = pick(actions.size());
    auto at = actions.begin() + static_cast<int64_t>(a);
    switch (pick(6)) {
      case 0:
        if (a + 1 < actions.size()) std::swap(actions[a], actions[a + 1]);
        return;
      case 1:
        std::swap(*at, actions[pick(actions.size())]);
        return;
      case 2:
        actions.erase(at);
        return;
      case 3:
        actions.insert(at, actions[pick(actions.size())]);
        return;
      case 4:
        at->microbatch = static_cast<int32_t>(pick(program_->microbatches));
        return;
      default:
        if (at->kind != ActionKind::kRun && at->kind != ActionKind::kFree)
          at->tag = actions[pick(actions.size())].tag;
    }
  }

  void change_rank(RankProgram& rank) {
    switch (pick(5)) {
      case 0:
        std::swap(rank.loads[pick(rank.loads.size())].slot, rank.loads[pick(rank.loads.size())].slot);
        return;
      case 1:
        change_box(rank.loads[pick(rank.loads.size())].box);
        return;
      case 2:
        std::swap(rank.results[pick(rank.results.size())].slot, rank.results[pick(rank.results.size())].slot);
        return;
      case 3:
        change_box(rank.results[pick(rank.results.size())].box);
        return;
      default:
        for (RankProgram& each : program_->ranks)
          for (std::vector<int32_t>& group : each.groups) std::reverse(group.begin(), group.end());
    }
  }

  void change_box(Box& box) {
    if (box.empty()) return;
    std::vector<Interval>& leaves = box[pick(box.size())];
    if (leaves.empty()) return;
    Interval& leaf = leaves[pick(leaves.size())];
    int64_t shift = chance(2) ? leaf.length() : -leaf.length();
    leaf = {leaf.begin + shift, leaf.end + shift};
  }

  std::mt19937_64 random_;
  Program* program_ = nullptr;
};

}  // namespace partita::program
