#include "base/json.h"

#include <fmt/format.h>

#include "model/json_rows.h"
#include "program/fold_file.h"
#include "program/words.h"

namespace partita::program {
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
template <class Show>
std::string numbered_lines(size_t count, const char* indent, Show show) {
  if (count == 0) return "[]";
  std::string text = "[\n";
  for (size_t i = 0; i < count; ++i)
    text += fmt::format("{} {}{}\n", indent, show(i), i + 1 < count ? "," : "");
  return text + indent + "]";
}
template <class Items, class Show>
std::string lines_of(const Items& items, const char* indent, Show show) {
  return numbered_lines(items.size(), indent, [&](size_t i) { return show(items[i]); });
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
  if (row.pieces) text += ", \"pieces\": " + numbers(instr.pieces);
  if (row.shares)
    text += fmt::format(", \"scatter\": {}, \"shares\": {}", show_cut(instr.scatter), numbers(instr.shares));
  if (row.range) text += fmt::format(", \"begin\": {}, \"length\": {}", instr.begin, instr.length);
  if (instr.steps != Steps{}) text += ", \"steps\": " + steps_to_json(instr.steps);
  if (instr.settings != 0) text += fmt::format(", \"settings\": {}", instr.settings);
  if (instr.sum) text += ", \"sum\": " + quote(model[instr.sum].name);
  if (!instr.drop.empty()) text += ", \"drop\": " + list_of(instr.drop, show_slot);
  return text + "}";
}

std::string show_action(const Action& action) {
  const ActionRow& row = row_of(action.kind);
  std::string name = quote(row.name);
  if (action.kind == ActionKind::kRun)
    return fmt::format("[{}, {}, {}]", name, action.body.value, action.microbatch);
  std::string text = fmt::format("[{}, {}, {}", name, show_slot(action.slot), action.microbatch);
  if (row.talks) text += fmt::format(", {}, {}", action.peer, action.tag);
  if (row.makes) text += fmt::format(", {}", action.type.value);
  return text + "]";
}

std::string show_load(const Load& load, const std::string& box, const Model& model) {
  std::string text = fmt::format("{{\"slot\": {}, \"tensor\": {}, \"box\": {}, \"type\": {}",
                                 show_slot(load.slot), quote(model[load.tensor].name), box, load.type.value);
  if (load.microbatch != 0) text += fmt::format(", \"microbatch\": {}", load.microbatch);
  if (load.state >= 0) text += fmt::format(", \"state\": {}", load.state);
  return text + "}";
}

std::string show_result(const Result& result, const std::string& box, const Model& model) {
  return fmt::format("{{\"kind\": \"{}\", \"slot\": {}, \"tensor\": {}, \"box\": {}}}", name_of(result.kind),
                     show_slot(result.slot), quote(model[result.tensor].name), box);
}

std::string show_part(const Body& body) {
  if (!body.part) return "";
  std::string text = fmt::format(", \"part\": \"{}\", \"stage\": {}", name_of(*body.part), body.stage);
  return body.stream == 0 ? text : text + fmt::format(", \"stream\": {}", body.stream);
}

std::string show_body(const Body& body, const Model& model) {
  return fmt::format(
      "{{\"name\": {}{}, \"locals\": {}, \"instrs\": {}}}", quote(body.name), show_part(body), body.locals,
      lines_of(body.instrs, "  ", [&](const Instr& instr) { return show_instr(instr, model); }));
}

// A class has the boxes of its fold, a rank its own.
std::string show_rank(const Program& program, const Fold& fold, size_t number, const Model& model) {
  const RankProgram& rank = program.ranks[number];
  std::string text =
      fmt::format("{{\"rank_slots\": {}, \"frame_slots\": {}, \"groups\": {},\n", rank.rank_slots,
                  rank.frame_slots, list_of(rank.groups, numbers<std::vector<int32_t>>));
  auto box = [&](const Box& own, const auto& spans, size_t k) {
    return fold.empty() ? show_box(own) : spans_to_json(spans[number][k]);
  };
  auto load = [&](size_t k) {
    return show_load(rank.loads[k], box(rank.loads[k].box, fold.loads, k), model);
  };
  auto result = [&](size_t k) {
    return show_result(rank.results[k], box(rank.results[k].box, fold.results, k), model);
  };
  text += "   \"loads\": " + numbered_lines(rank.loads.size(), "   ", load) + ",\n";
  text += "   \"results\": " + numbered_lines(rank.results.size(), "   ", result) + ",\n";
  return text + "   \"actions\": " + lines_of(rank.actions, "   ", show_action) + "}";
}

std::string show_program(const Program& program, const Fold& fold, const Model& model) {
  std::string text = fmt::format(
      "{{\"format\": \"partita.program\", \"version\": {}, \"model\": {}, \"microbatches\": {},\n",
      kProgramVersion, quote(fingerprint(model)), program.microbatches);
  text += " \"optimizer\": " + optimizer_json(program.optimizer).dump() + ",\n";
  Json precision = precision_json(program.optimizer.precision);
  if (!precision.empty()) text += " \"precision\": " + precision.dump() + ",\n";
  if (!fold.empty()) text += " \"fold\": " + fold_to_json(fold) + ",\n";
  auto body = [&](const Body& one) { return show_body(one, model); };
  auto rank = [&](size_t number) { return show_rank(program, fold, number, model); };
  text += " \"types\": " + lines_of(program.types, " ", show_type) + ",\n";
  text += " \"bodies\": " + lines_of(program.bodies, " ", body) + ",\n";
  return text + " \"ranks\": " + numbered_lines(program.ranks.size(), " ", rank) + "}\n";
}

}  // namespace

std::string to_json(const Program& program, const Model& model) {
  return show_program(program, Fold{}, model);
}

std::string to_json(const FoldedProgram& folded, const Model& model) {
  return show_program(folded.program, folded.fold, model);
}

}  // namespace partita::program
