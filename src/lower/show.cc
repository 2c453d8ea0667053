#include <fmt/format.h>

#include "lower/passes.h"
#include "program/words.h"

namespace partita::lower {
namespace {

std::string name_of_value(const Model& model, const Value& value) {
  if (!value.tensor) return "squares";
  std::string name = model[value.tensor].name;
  if (value.state >= 0) name += fmt::format(" state {}", value.state);
  if (value.as) name += fmt::format(" as {}", dtype_name(*value.as));
  if (value.piece >= 0) name += fmt::format(" piece {}", value.piece);
  return name;
}

std::string names_of(const std::vector<int>& values) {
  std::string text;
  for (int value : values) text += value < 0 ? " _" : fmt::format(" v{}", value);
  return text;
}

}  // namespace

std::string name_of_segment(const Segment& segment) {
  constexpr const char* kNames[] = {"prologue", "forward", "backward", "weight", "epilogue"};
  std::string name = kNames[segment.kind];
  if (segment.in_loop()) name += fmt::format(" of stage {}", segment.stage);
  if (segment.stream > 0) name += fmt::format(", stream {}", segment.stream);
  return name;
}

namespace {

std::string line_of(const Model& model, const SiteCode& code, const CodeStep& step) {
  std::string text = fmt::format(" {} =", names_of(step.out));
  text += step.op ? " " + model.ops[step.op.value].name : fmt::format(" {}", row_of(step.kind).name);
  text += names_of(step.in);
  if (step.accumulate) text += " added up";
  for (int out : step.out)
    if (out >= 0)
      text +=
          fmt::format("  # {} {}", name_of_value(model, code.values[out]), to_text(code.values[out].layout));
  return text + "\n";
}

}  // namespace

std::string show_parts(const Lowering& lowering) {
  const Model& model = lowering.from.model;
  std::string text;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const SplitOp& op = lowering.parts.split.ops[i];
    constexpr const char* kLevels[] = {"before", "inside", "after"};
    text += fmt::format("{} {}", model.ops[i].name, kLevels[static_cast<int>(op.level)]);
    for (int stage : lowering.parts.assigned.stages[i]) text += fmt::format(" stage {}", stage);
    for (const Layout& need : op.need) text += " " + to_text(need);
    text += " ->";
    for (const Layout& made : op.made) text += " " + to_text(made);
    text += "\n";
  }
  return text;
}

std::string show_order(const Lowering& lowering) {
  const Schedule& schedule = lowering.ordered.schedule;
  std::string text;
  for (size_t device = 0; device < schedule.order.size(); ++device) {
    text += fmt::format("device {}:", device);
    for (const Step& step : schedule.order[device]) text += " " + show(step);
    text += "\n";
  }
  return text;
}

std::string show_code(const Lowering& lowering) {
  const Model& model = lowering.from.model;
  std::string text;
  for (size_t site = 0; site < lowering.code.sites.size(); ++site) {
    const SiteCode& code = lowering.code.sites[site];
    text += fmt::format("site {}\n", site);
    for (size_t v = 0; v < code.values.size(); ++v)
      if (code.values[v].loaded)
        text += fmt::format("  v{} = load {} {}\n", v, name_of_value(model, code.values[v]),
                            to_text(code.values[v].layout));
    for (const auto& [segment, steps] : code.segments) {
      text += name_of_segment(segment) + "\n";
      for (const CodeStep& step : steps) text += line_of(model, code, step);
    }
  }
  for (const Transfer& sent : lowering.code.transfers)
    text +=
        fmt::format("site {} v{} -> site {} v{}: after {}, before {}\n", sent.from_site, sent.from_value,
                    sent.to_site, sent.to_value, name_of_segment(sent.after), name_of_segment(sent.before));
  return text;
}

std::string show_placements(const Lowering& lowering) {
  std::string text;
  for (size_t site = 0; site < lowering.placements.size(); ++site) {
    text += fmt::format("site {}\n", site);
    const Placement& placement = lowering.placements[site];
    for (size_t v = 0; v < placement.slots.size(); ++v)
      text += fmt::format("  v{} in {}\n", v, to_text(placement.slots[v]));
  }
  return text;
}

std::string show_frees(const Lowering& lowering) {
  constexpr const char* kDeaths[] = {"never", "in its body", "by action", "after the loop"};
  std::string text;
  for (size_t site = 0; site < lowering.frees.size(); ++site) {
    text += fmt::format("site {}\n", site);
    const std::vector<Freed>& values = lowering.frees[site].values;
    for (size_t v = 0; v < values.size(); ++v)
      text += fmt::format("  v{} in {}, freed {}\n", v, to_text(lowering.placements[site].slots[v]),
                          kDeaths[static_cast<int>(values[v].death)]);
  }
  return text;
}

std::string show_classes(const Lowering& lowering) {
  std::string text;
  for (size_t site = 0; site < lowering.classes.grids.size(); ++site) {
    text += fmt::format("site {}\n", site);
    for (size_t k = 0; k < lowering.classes.numbers[site].size(); ++k) {
      text += fmt::format("  rank {} at", lowering.classes.numbers[site][k]);
      for (const Interval& range : lowering.classes.grids[site].at(static_cast<int64_t>(k)))
        text += range.length() == 1 ? fmt::format(" {}", range.begin)
                                    : fmt::format(" {}..{}", range.begin, range.end - 1);
      text += "\n";
    }
  }
  return text;
}

std::string show_instances(const Lowering& lowering) {
  return to_text(lowering.instances.program.program, lowering.from.model);
}

std::string show_program(const Lowering& lowering) {
  return to_text(lowering.out.program, lowering.from.model);
}

}  // namespace partita::lower
