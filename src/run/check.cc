#include "run/check.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "program/effects.h"

namespace partita::run {
namespace {

constexpr std::string_view kSpaces[] = {"rank", "frame", "local"};

std::string show(Slot slot) {
  return fmt::format("{} slot {}", kSpaces[static_cast<int>(slot.space)], slot.index);
}

// Slots of a body that outlive it, by what the body does to them.
struct Touched {
  std::set<Slot> read, changed;
};

struct Checker {
  const Program& program;
  const Model& model;
  std::string where;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    input_error("program: {}: {}", where, fmt::format(text, std::forward<Args>(args)...));
  }

  void type(TypeId id) const {
    if (id.value < 0 || static_cast<size_t>(id.value) >= program.types.size()) fail("no type {}", id.value);
  }

  void tensor_indices(const Arg& arg, size_t inputs) const {
    if (arg.kind == Arg::kTensor && (arg.tensor.value < 0 || static_cast<size_t>(arg.tensor.value) >= inputs))
      fail("argument reads input {} of {}", arg.tensor.value, inputs);
    for (const Arg& item : arg.items) tensor_indices(item, inputs);
  }

  void instr(const Instr& instr, int32_t locals) const {
    for (const auto* slots : {&instr.in, &instr.out, &instr.drop})
      for (Slot slot : *slots)
        if (slot.index >= 0 && slot.space == Space::kLocal && slot.index >= locals)
          fail("{} of {} locals", show(slot), locals);
    for (Slot slot : instr.in)
      if (slot.index < 0) fail("an input without a slot");
    bool computes = instr.kind == InstrKind::kCompute;
    if (computes && (instr.op.value < 0 || static_cast<size_t>(instr.op.value) >= model.ops.size()))
      fail("no op {} in the model", instr.op.value);
    for (const Arg& arg : instr.args) tensor_indices(arg, instr.in.size());
    for (const auto& [name, arg] : instr.kwargs) tensor_indices(arg, instr.in.size());
    if (instr.into >= static_cast<int32_t>(instr.in.size()))
      fail("adds to input {} of {}", instr.into, instr.in.size());
    for (TypeId id : instr.types)
      if (id) type(id);
    operands(instr);
  }

  void operands(const Instr& instr) const {
    if (instr.kind == InstrKind::kCompute) return;
    const InstrRow& row = row_of(instr.kind);
    bool inputs = row.in < 0 ? instr.in.size() >= (row.in_place ? 2 : 1)
                             : instr.in.size() == static_cast<size_t>(row.in);
    bool outputs =
        instr.out.size() == static_cast<size_t>(row.out) && (instr.out.empty() || instr.out[0].index >= 0);
    if (!inputs || !outputs)
      fail("an instruction with {} inputs and {} outputs", instr.in.size(), instr.out.size());
    bool typed = row.out > 0 && is_typed(row);
    if (typed && (instr.types.empty() || !instr.types[0])) fail("an output without a type");
  }

  Touched touched(const Body& body) {
    Touched result;
    for (size_t i = 0; i < body.instrs.size(); ++i) {
      where = fmt::format("body {}, instruction {}", body.name, i);
      instr(body.instrs[i], body.locals);
      auto add = [](std::set<Slot>& set, const std::vector<Slot>& slots) {
        for (Slot slot : slots)
          if (slot.index >= 0 && slot.space != Space::kLocal) set.insert(slot);
      };
      const Instr& instr = body.instrs[i];
      add(result.read, instr.in);
      add(result.changed, instr.out);
      add(result.changed, instr.drop);
      for (size_t k = 0; k < instr.in.size(); ++k)
        if (changes(instr, k)) add(result.changed, {instr.in[k]});
    }
    return result;
  }
};

// A transfer that has begun and was not waited for.
struct Pending {
  Slot slot;
  int32_t microbatch, peer, tag;
  bool sending;
  auto operator<=>(const Pending&) const = default;
};

class RankChecker {
 public:
  RankChecker(const Checker& checker, int32_t rank, const std::vector<Touched>& bodies)
      : check_(checker),
        program_(checker.program),
        self_(program_.ranks[rank]),
        rank_(rank),
        bodies_(bodies) {}

  void run() {
    check_.where = fmt::format("rank {}", rank_);
    groups();
    for (const Load& load : self_.loads) this->load(load);
    for (const Result& result : self_.results) {
      if (result.slot.space != Space::kRank)
        check_.fail("a result in {}: results live in rank slots", show(result.slot));
      in_range(result.slot);
    }
    for (size_t a = 0; a < self_.actions.size(); ++a) {
      check_.where = fmt::format("rank {}, action {}", rank_, a);
      action(self_.actions[a]);
    }
    check_.where = fmt::format("rank {}", rank_);
    if (!pending_.empty())
      check_.fail("the {} of {} with rank {} (tag {}) is never waited for",
                  pending_.begin()->sending ? "send" : "receive", show(pending_.begin()->slot),
                  pending_.begin()->peer, pending_.begin()->tag);
  }

 private:
  void groups() const {
    for (const auto& group : self_.groups) {
      std::set<int32_t> members(group.begin(), group.end());
      bool known = std::all_of(group.begin(), group.end(), [&](int32_t r) { return r >= 0 && r < ranks(); });
      if (!known || members.size() != group.size() || !members.contains(rank_))
        check_.fail("group [{}] must name different ranks and this one", fmt::join(group, ", "));
    }
  }

  int32_t ranks() const { return static_cast<int32_t>(program_.ranks.size()); }

  void load(const Load& load) const {
    check_.type(load.type);
    in_range(load.slot);
    if (load.tensor.value < 0 || static_cast<size_t>(load.tensor.value) >= check_.model.tensors.size())
      check_.fail("loads tensor {}, which the model does not have", load.tensor.value);
    bool batch = check_.model[load.tensor].role == Role::kBatchInput;
    if (load.slot.space == Space::kFrame && !batch)
      check_.fail("loads {} into {}: only batch inputs live in frames", check_.model[load.tensor].name,
                  show(load.slot));
    if (load.microbatch < 0 || load.microbatch >= program_.microbatches)
      check_.fail("micro-batch {} of {}", load.microbatch, program_.microbatches);
  }

  void in_range(Slot slot) const {
    int32_t size = slot.space == Space::kRank    ? self_.rank_slots
                   : slot.space == Space::kFrame ? self_.frame_slots
                                                 : 0;
    if (slot.index < 0 || slot.index >= size) check_.fail("{} of {}", show(slot), size);
  }

  void action(const Action& action) {
    if (action.microbatch < 0 || action.microbatch >= program_.microbatches)
      check_.fail("micro-batch {} of {}", action.microbatch, program_.microbatches);
    if (action.kind == ActionKind::kRun) return run_body(action);
    in_range(action.slot);
    if (!row_of(action.kind).talks) return untouched(action.slot, action.microbatch, true);
    if (action.peer < 0 || action.peer >= ranks() || action.peer == rank_)
      check_.fail("no peer {}", action.peer);
    const ActionRow& row = row_of(action.kind);
    Pending transfer{action.slot, action.microbatch, action.peer, action.tag, row.sends};
    if (!row.begins) {
      if (!pending_.erase(transfer))
        check_.fail("waits for a transfer of {} that has not begun", show(action.slot));
      return;
    }
    if (row.makes) check_.type(action.type);
    untouched(action.slot, action.microbatch, !row.sends);
    if (!pending_.insert(transfer).second)
      check_.fail("begins the same transfer of {} twice", show(action.slot));
  }

  void run_body(const Action& action) const {
    if (action.body.value < 0 || static_cast<size_t>(action.body.value) >= program_.bodies.size())
      check_.fail("no body {}", action.body.value);
    const Touched& touched = bodies_[action.body.value];
    for (Slot slot : touched.read) in_range(slot), untouched(slot, action.microbatch, false);
    for (Slot slot : touched.changed) in_range(slot), untouched(slot, action.microbatch, true);
    for (const Instr& instr : program_[action.body].instrs) group_of(instr);
  }

  void group_of(const Instr& instr) const {
    const InstrRow& row = row_of(instr.kind);
    if (!row.collective) return;
    if (instr.group < 0 || static_cast<size_t>(instr.group) >= self_.groups.size())
      check_.fail("no group {}", instr.group);
    if (row.pieces && instr.pieces.size() != self_.groups[instr.group].size())
      check_.fail("{} pieces for a group of {}", instr.pieces.size(), self_.groups[instr.group].size());
    if (row.shares && instr.shares.size() != instr.pieces.size())
      check_.fail("{} shares of {} pieces", instr.shares.size(), instr.pieces.size());
  }

  // What is on its way out may be read but not changed; what is on its way in may not even be read.
  void untouched(Slot slot, int32_t microbatch, bool change) const {
    for (const Pending& transfer : pending_) {
      bool same = transfer.slot == slot && (slot.space == Space::kRank || transfer.microbatch == microbatch);
      if (same && (change || !transfer.sending))
        check_.fail("{} {} before its {} with rank {} is over", change ? "changes or frees" : "reads",
                    show(slot), transfer.sending ? "send" : "receive", transfer.peer);
    }
  }

  Checker check_;
  const Program& program_;
  const RankProgram& self_;
  int32_t rank_;
  const std::vector<Touched>& bodies_;
  std::set<Pending> pending_;
};

}  // namespace

void check_runnable(const Program& program, const Model& model) {
  Checker checker{program, model, ""};
  std::vector<Touched> bodies;
  for (const Body& body : program.bodies) bodies.push_back(checker.touched(body));
  for (size_t rank = 0; rank < program.ranks.size(); ++rank)
    RankChecker(checker, static_cast<int32_t>(rank), bodies).run();
}

}  // namespace partita::run
