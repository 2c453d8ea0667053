#include "base/json.h"

#include <fmt/format.h>

#include "model/json_rows.h"
#include "program/words.h"

namespace partita {
namespace {

std::string quote(std::string_view text) { return Json(text).dump(); }

template <class Items, class Show>
std::string list_of(const Items& items, Show show) {
  std::string text = "[";
  for (const auto& item : items) text += (text.size() > 1 ? ", " : "") + show(item);
  return text + "]";
}

template <class Items>
std::string numbers(const Items& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

/// One item a line, so that a line number in an error message means something.
template <class Items, class Show>
std::string lines_of(const Items& items, const char* indent, Show show) {
  if (items.empty()) return "[]";
  std::string text = "[\n";
  for (size_t i = 0; i < items.size(); ++i)
    text += fmt::format("{} {}{}\n", indent, show(items[i]), i + 1 < items.size() ? "," : "");
  return text + indent + "]";
}

std::string show_slot(Slot slot) { return slot.index < 0 ? "null" : quote(to_text(slot)); }
std::string show_type_id(TypeId id) { return id ? fmt::to_string(id.value) : "null"; }

std::string show_box(const Box& box) {
  auto interval = [](const Interval& i) { return fmt::format("[{}, {}]", i.begin, i.end); };
  return list_of(box, [&](const std::vector<Interval>& leaves) { return list_of(leaves, interval); });
}

std::string show_cut(const Cut& cut) {
  return fmt::format("[{}, {}, {}, {}]", cut.dim, cut.leaf, cut.outer, cut.inner);
}

std::string show_type(const TensorType& type) {
  return fmt::format("[\"{}\", {}, {}]", dtype_name(type.dtype), numbers(type.shape), numbers(type.strides));
}

std::string show_call(const Instr& instr, const Model& model) {
  std::string text = fmt::format(", \"op\": {}, \"args\": {}", quote(model[instr.op].name),
                                 list_of(instr.args, arg_to_json));
  if (!instr.kwargs.empty()) {
    std::string inside;
    for (const auto& [name, arg] : instr.kwargs)
      inside += fmt::format("{}{}: {}", inside.empty() ? "" : ", ", quote(name), arg_to_json(arg));
    text += fmt::format(", \"kwargs\": {{{}}}", inside);
  }
  if (instr.into >= 0) text += fmt::format(", \"into\": {}", instr.into);
  return text + (instr.view ? ", \"view\": true" : "");
}

std::string show_instr(const Instr& instr, const Model& model) {
  const InstrRow& row = row_of(instr.kind);
  std::string text = fmt::format("{{\"do\": \"{}\"", row.name);
  if (instr.kind == InstrKind::kCompute) text += show_call(instr, model);
  text +=
      fmt::format(", \"in\": {}, \"out\": {}", list_of(instr.in, show_slot), list_of(instr.out, show_slot));
  if (!instr.types.empty()) text += ", \"types\": " + list_of(instr.types, show_type_id);
  if (row.collective) text += fmt::format(", \"group\": {}", instr.group);
  if (instr.later) text += ", \"later\": true";
  if (row.cut) text += ", \"cut\": " + show_cut(instr.cut);
  if (row.cut && instr.kind != InstrKind::kSlice) text += ", \"pieces\": " + numbers(instr.pieces);
  if (instr.kind == InstrKind::kAllToAll)
    text += fmt::format(", \"scatter\": {}, \"shares\": {}", show_cut(instr.scatter), numbers(instr.shares));
  if (instr.kind == InstrKind::kSlice)
    text += fmt::format(", \"begin\": {}, \"length\": {}", instr.begin, instr.length);
  if (instr.settings != 0) text += fmt::format(", \"settings\": {}", instr.settings);
  if (instr.sum) text += ", \"sum\": " + quote(model[instr.sum].name);
  if (!instr.drop.empty()) text += ", \"drop\": " + list_of(instr.drop, show_slot);
  return text + "}";
}

std::string show_action(const Action& action) {
  std::string name = quote(name_of(action.kind));
  if (action.kind == ActionKind::kRun)
    return fmt::format("[{}, {}, {}]", name, action.body.value, action.microbatch);
  std::string text = fmt::format("[{}, {}, {}", name, show_slot(action.slot), action.microbatch);
  if (action.kind != ActionKind::kFree) text += fmt::format(", {}, {}", action.peer, action.tag);
  if (action.kind == ActionKind::kPostReceive) text += fmt::format(", {}", action.type.value);
  return text + "]";
}

std::string show_load(const Load& load, const Model& model) {
  std::string text =
      fmt::format("{{\"slot\": {}, \"tensor\": {}, \"box\": {}, \"type\": {}", show_slot(load.slot),
                  quote(model[load.tensor].name), show_box(load.box), load.type.value);
  if (load.microbatch != 0) text += fmt::format(", \"microbatch\": {}", load.microbatch);
  if (load.state >= 0) text += fmt::format(", \"state\": {}", load.state);
  return text + "}";
}

std::string show_result(const Result& result, const Model& model) {
  return fmt::format("{{\"kind\": \"{}\", \"slot\": {}, \"tensor\": {}, \"box\": {}}}", name_of(result.kind),
                     show_slot(result.slot), quote(model[result.tensor].name), show_box(result.box));
}

std::string show_body(const Body& body, const Model& model) {
  return fmt::format(
      "{{\"name\": {}, \"locals\": {}, \"instrs\": {}}}", quote(body.name), body.locals,
      lines_of(body.instrs, "  ", [&](const Instr& instr) { return show_instr(instr, model); }));
}

std::string show_rank(const RankProgram& rank, const Model& model) {
  std::string text =
      fmt::format("{{\"rank_slots\": {}, \"frame_slots\": {}, \"groups\": {},\n", rank.rank_slots,
                  rank.frame_slots, list_of(rank.groups, numbers<std::vector<int32_t>>));
  auto load = [&](const Load& one) { return show_load(one, model); };
  auto result = [&](const Result& one) { return show_result(one, model); };
  text += "   \"loads\": " + lines_of(rank.loads, "   ", load) + ",\n";
  text += "   \"results\": " + lines_of(rank.results, "   ", result) + ",\n";
  return text + "   \"actions\": " + lines_of(rank.actions, "   ", show_action) + "}";
}

}  // namespace

std::string to_json(const Program& program, const Model& model) {
  std::string text = fmt::format(
      "{{\"format\": \"partita.program\", \"version\": {}, \"model\": {}, \"microbatches\": {},\n",
      kProgramVersion, quote(fingerprint(model)), program.microbatches);
  text += " \"optimizer\": " + optimizer_json(program.optimizer).dump() + ",\n";
  Json precision = precision_json(program.optimizer.precision);
  if (!precision.empty()) text += " \"precision\": " + precision.dump() + ",\n";
  auto body = [&](const Body& one) { return show_body(one, model); };
  auto rank = [&](const RankProgram& one) { return show_rank(one, model); };
  text += " \"types\": " + lines_of(program.types, " ", show_type) + ",\n";
  text += " \"bodies\": " + lines_of(program.bodies, " ", body) + ",\n";
  return text + " \"ranks\": " + lines_of(program.ranks, " ", rank) + "}\n";
}

}  // namespace partita
