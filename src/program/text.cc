#include <fmt/format.h>

#include "program/words.h"

namespace partita::program {
namespace {

template <class Items, class Show>
std::string joined(const Items& items, Show show) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + show(item);
  return text;
}

std::string show_slot(Slot slot) { return to_text(slot); }

/// Arguments with slots in the place of tensors.
std::string show_arg(const Arg& arg, const std::vector<Slot>& in) {
  switch (arg.kind) {
    case Arg::kNone:
      return "None";
    case Arg::kTensor:
      return to_text(in[arg.tensor.value]);
    case Arg::kInt:
      return fmt::to_string(arg.integer);
    case Arg::kFloat:
      return fmt::format("{}", arg.number);
    case Arg::kBool:
      return arg.integer ? "True" : "False";
    case Arg::kList:
      return fmt::format("[{}]", joined(arg.items, [&](const Arg& item) { return show_arg(item, in); }));
    default:
      return arg.text;
  }
}

std::string show_call(const Instr& instr, const Model& model) {
  std::string args = joined(instr.args, [&](const Arg& arg) { return show_arg(arg, instr.in); });
  for (const auto& [name, arg] : instr.kwargs)
    args += fmt::format("{}{}={}", args.empty() ? "" : ", ", name, show_arg(arg, instr.in));
  return fmt::format("{}({})", model[instr.op].target, args);
}

std::string show_cut(const Cut& cut) {
  return fmt::format(" along {}.{} ({}x..x{})", cut.dim, cut.leaf, cut.outer, cut.inner);
}

std::string show_cuts(const Instr& instr) {
  const InstrRow& row = row_of(instr.kind);
  std::string text = show_cut(instr.cut);
  if (row.range) return text + fmt::format(" [{}, {})", instr.begin, instr.begin + instr.length);
  text += fmt::format(" pieces [{}]", fmt::join(instr.pieces, ", "));
  if (row.shares)
    text += fmt::format(", shares{} [{}]", show_cut(instr.scatter), fmt::join(instr.shares, ", "));
  return text;
}

std::string show_instr(const Instr& instr, const Program& program, const Model& model) {
  const InstrRow& row = row_of(instr.kind);
  std::string outs;
  for (size_t k = 0; k < instr.out.size(); ++k) {
    outs += (k ? ", " : "") + to_text(instr.out[k]);
    if (k < instr.types.size() && instr.types[k])
      outs += fmt::format(" {}", to_text(program[instr.types[k]]));
  }
  bool computes = instr.kind == InstrKind::kCompute;
  std::string text = outs.empty() ? "" : fmt::format("{} = ", outs);
  text += computes ? show_call(instr, model) : fmt::format("{}({})", row.name, joined(instr.in, show_slot));
  if (row.collective) text += fmt::format(" over group {}{}", instr.group, instr.later ? ", started" : "");
  if (row.cut) text += show_cuts(instr);
  if (instr.into >= 0) text += fmt::format(" added to {}", to_text(instr.in[instr.into]));
  if (instr.settings != 0) text += fmt::format(" by group {}", instr.settings - 1);
  if (instr.sum) text += fmt::format(" as {}", model[instr.sum].name);
  if (!instr.drop.empty()) text += fmt::format("; drop {}", joined(instr.drop, show_slot));
  return computes ? fmt::format("{}  # {}", text, model[instr.op].name) : text;
}

std::string show_action(const Action& action, const Program& program) {
  const ActionRow& row = row_of(action.kind);
  if (action.kind == ActionKind::kRun)
    return fmt::format("{} {} micro-batch {}", row.name, program[action.body].name, action.microbatch);
  std::string text = fmt::format("{} {}", row.name, to_text(action.slot));
  if (row.makes) text += fmt::format(" {}", to_text(program[action.type]));
  if (action.slot.space == Space::kFrame) text += fmt::format(" micro-batch {}", action.microbatch);
  if (!row.talks) return text;
  return text + fmt::format(" {} rank {} tag {}", row.sends ? "to" : "from", action.peer, action.tag);
}

std::string show_rank(const RankProgram& rank, size_t number, const Program& program, const Model& model) {
  std::string text = fmt::format("rank {}\n", number);
  for (size_t g = 0; g < rank.groups.size(); ++g)
    text += fmt::format("  group {}: [{}]\n", g, fmt::join(rank.groups[g], ", "));
  for (const Load& load : rank.loads) {
    text += fmt::format("  load {}", to_text(load.slot));
    if (load.slot.space == Space::kFrame) text += fmt::format(" micro-batch {}", load.microbatch);
    text += fmt::format(" = {}{}{}\n", model[load.tensor].name, to_text(load.box),
                        load.state < 0 ? "" : fmt::format(" state {}", load.state));
  }
  for (size_t a = 0; a < rank.actions.size(); ++a)
    text += fmt::format("  {}: {}\n", a, show_action(rank.actions[a], program));
  for (const Result& result : rank.results)
    text += fmt::format("  {} {}{} in {}\n", name_of(result.kind), model[result.tensor].name,
                        to_text(result.box), to_text(result.slot));
  return text;
}

}  // namespace

std::string to_text(const Program& program, const Model& model) {
  std::string text = fmt::format("program for {}: {} ranks, {} micro-batches, {}\n", model.name,
                                 program.ranks.size(), program.microbatches, program.optimizer.name);
  for (const Body& body : program.bodies) {
    text += fmt::format("body {}\n", body.name);
    for (size_t i = 0; i < body.instrs.size(); ++i)
      text += fmt::format("  {}: {}\n", i, show_instr(body.instrs[i], program, model));
  }
  for (size_t r = 0; r < program.ranks.size(); ++r) text += show_rank(program.ranks[r], r, program, model);
  return text;
}

}  // namespace partita::program
