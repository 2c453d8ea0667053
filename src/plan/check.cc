#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "model/seed.h"
#include "plan/exact_splits.h"
#include "plan/plan.h"
#include "plan/recipes/cut.h"
#include "schedule/schedule.h"

namespace partita::plan {
namespace {

using Faults = std::vector<std::string>;

std::vector<std::string> axis_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : plan.mesh) names.push_back(axis.name);
  return names;
}

void check_axis(const Plan& plan, const std::string& axis, const std::string& where, Faults& faults) {
  std::vector<std::string> known = axis_names(plan);
  if (std::find(known.begin(), known.end(), axis) == known.end())
    faults.push_back(
        fmt::format("{}: the mesh has no axis \"{}\"{}", where, axis, did_you_mean(axis, known)));
}

void check_pattern(const std::string& pattern, const std::vector<std::string>& names,
                   const std::string& where, Faults& faults) {
  if (std::any_of(names.begin(), names.end(),
                  [&](const std::string& name) { return matches(pattern, name); }))
    return;
  faults.push_back(fmt::format("{}: no op of this model is called \"{}\"{}", where, pattern,
                               did_you_mean(pattern, names)));
}

/// Where the first axis of the mesh lies across the stages, one block of its devices is a stage's own.
void check_across(const Plan& plan, Faults& faults) {
  std::vector<int32_t> all;
  std::set<std::vector<int32_t>> blocks;
  for (const Stage& stage : plan.stages) {
    if (!stage.copies.empty())
      faults.push_back("stages: copies and a mesh across the stages exclude each other");
    if (!plan.spans(stage)) {
      blocks.insert(stage.devices);
    } else if (all.empty()) {
      all = stage.devices;
    } else if (all != stage.devices) {
      faults.push_back("stages: two that spread over all others need the same devices in the same order");
    }
  }
  std::set<std::vector<int32_t>> needed;
  for (size_t at = 0; at < all.size(); at += plan.mesh_size())
    needed.insert({all.begin() + static_cast<ptrdiff_t>(at),
                   all.begin() + static_cast<ptrdiff_t>(std::min(all.size(), at + plan.mesh_size()))});
  if (blocks != needed || static_cast<int64_t>(needed.size()) != plan.mesh[0].size)
    faults.push_back(fmt::format(
        "mesh: axis \"{}\" lies across the stages: it needs a stage on all devices, and others on "
        "{} blocks of {} of them, in that order",
        plan.mesh[0].name, plan.mesh[0].size, plan.mesh_size()));
}

void check_mesh(const Plan& plan, Faults& faults) {
  for (size_t axis = 1; axis < plan.mesh.size(); ++axis)
    if (plan.mesh[axis].across)
      faults.push_back(fmt::format("mesh: axis \"{}\" lies across the stages and has to come first",
                                   plan.mesh[axis].name));
  if (plan.has_across()) check_across(plan, faults);
}

void check_stages(const Plan& plan, const std::vector<std::string>& ops, Faults& faults) {
  std::set<int32_t> used;
  std::set<std::vector<int32_t>> sites;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    std::string where = fmt::format("stages[{}]", s);
    if (stage.ops.empty()) faults.push_back(fmt::format("{}: has no ops", where));
    for (const std::string& pattern : stage.ops) check_pattern(pattern, ops, where, faults);
    if (stage.copies.size() != plan.stages[0].copies.size())
      faults.push_back(fmt::format("{}: has {} copies, stages[0] has {}", where, stage.copies.size(),
                                   plan.stages[0].copies.size()));
    std::vector<std::vector<int32_t>> lists = stage.copies;
    lists.insert(lists.begin(), stage.devices);
    for (const std::vector<int32_t>& devices : lists) {
      if (plan.spans(stage)) continue;
      if (static_cast<int64_t>(devices.size()) != plan.mesh_size())
        faults.push_back(
            fmt::format("{}: {} devices, but the mesh has {}", where, devices.size(), plan.mesh_size()));
      if (!sites.insert(devices).second) continue;
      for (int32_t device : devices)
        if (!used.insert(device).second)
          faults.push_back(fmt::format(
              "{}: device {} is used twice; give every stage devices of its own, or the same as another's",
              where, device));
    }
  }
  if (plan.stages.empty()) faults.push_back("stages: needs at least one");
  int32_t next = 0;
  for (int32_t device : used)
    if (device != next++) {
      faults.push_back(fmt::format("stages: devices must be numbered 0 to {} without gaps", used.size() - 1));
      break;
    }
}

/// The op of the captured step that this one is a part of: parts have words after its number,
/// "loss/nll.1.mean".
std::string whole_op(const std::string& name) {
  size_t dot = name.find('/');
  while ((dot = name.find('.', dot + 1)) != name.npos)
    if (dot + 1 < name.size() && std::isalpha(static_cast<unsigned char>(name[dot + 1])))
      return name.substr(0, dot);
  return name;
}

/// Every op that a pipeline cuts (cut.h) is on a stage by name; the others follow their inputs.
void check_placed(const Plan& plan, const Model& model, Faults& faults) {
  if (plan.stages.size() < 2) return;
  std::set<std::string> whole;
  std::vector<std::string> patterns;
  for (const Stage& stage : plan.stages)
    for (const std::string& pattern : stage.ops)
      if (pattern.find('*') == pattern.npos)
        whole.insert(pattern);
      else
        patterns.push_back(pattern);
  for (OpId id : line_ops(model)) {
    std::string name = whole_op(model[id].name);
    auto fits = [&](const std::string& pattern) { return matches(pattern, name); };
    if (whole.contains(name) || std::any_of(patterns.begin(), patterns.end(), fits)) continue;
    faults.push_back(
        fmt::format("stages: no stage has op {}; add it, its module as \"{}/*\", or \"*\" to one of them",
                    name, name.substr(0, name.find('/'))));
    return;
  }
}

/// A rule that no op can follow is a mistake: says why the first op that has one of its atoms cannot.
void check_splittable(const SplitRule& rule, const std::string& where, const Model& model, const Atoms& atoms,
                      Faults& faults) {
  std::string why;
  for (const std::string& name : rule.atoms) {
    AtomId atom = find_atom(model, atoms, name, where);
    for (size_t i = 0; i < model.ops.size(); ++i) {
      if (!matches(rule.ops, model.ops[i].name)) continue;
      for (const Loop& loop : atoms.ops[i].loops) {
        if (loop.atom != atom) continue;
        if (!loop.frozen) return;
        if (why.empty()) why = fmt::format("{} at {}: {}", name, model.ops[i].name, loop.why);
      }
    }
    if (why.empty()) why = fmt::format("no op called \"{}\" has {}", rule.ops, name);
  }
  if (!why.empty()) faults.push_back(fmt::format("{}: cannot be split: {}; choose another atom", where, why));
}

// A leaf cut by several axes ends in pieces of floor(...floor(size / a) / b): none may be empty.
void check_lengths(const Plan& plan, const Model& model, const Atoms& atoms, Faults& faults) {
  std::map<AtomId, std::pair<int64_t, std::string>> parts;
  auto cut = [&](const std::string& name, const std::string& axis, int64_t size) {
    AtomId atom = find_atom(model, atoms, name, "split");
    auto& [count, axes] = parts.try_emplace(atom, 1, "").first->second;
    count *= size;
    axes += (axes.empty() ? "" : " x ") + fmt::format("{}={}", axis, size);
  };
  for (const MeshAxis& axis : plan.mesh) {
    std::set<std::string> seen;
    for (const SplitRule& rule : plan.split)
      if (rule.axis == axis.name)
        for (const std::string& name : rule.atoms)
          if (seen.insert(name).second) cut(name, axis.name, axis.size);
  }
  if (plan.microbatches > 1) cut(plan.microbatch_atom, "micro-batches", plan.microbatches);
  std::set<std::pair<std::string, std::string>> looped;
  for (const LoopRule& rule : plan.loops)
    for (const std::string& name : rule.atoms)
      if (looped.insert({rule.name, name}).second) cut(name, rule.name, rule.size);
  for (const auto& [atom, use] : parts)
    if (atoms.sizes[atom.value] < use.first)
      faults.push_back(
          fmt::format("split: {} has length {}, which cannot feed {} pieces ({}); use fewer ranks or "
                      "micro-batches, or a larger batch",
                      atoms.names[atom.value], atoms.sizes[atom.value], use.first, use.second));
}

/// A gradient is a sum over micro-batches: no trained parameter has the dimension that they split.
void check_micro_batches(const Plan& plan, const Model& model, const Atoms& atoms, Faults& faults) {
  if (plan.microbatches < 2) return;
  AtomId cut = find_atom(model, atoms, plan.microbatch_atom, "loops");
  for (const auto& [parameter, gradient] : model.gradients)
    for (const auto& leaves : atoms.dims[parameter.value])
      if (std::find(leaves.begin(), leaves.end(), cut) != leaves.end()) {
        faults.push_back(
            fmt::format("microbatches: they split {}, which trained parameter {} has too; use 1 micro-batch",
                        plan.microbatch_atom, whole_name(model, parameter)));
        return;
      }
}

/// Every op can do what the rule that speaks of it says, and no loop is cut into more pieces than it is long.
void check_exact(const Plan& plan, const Model& model, const Atoms& atoms, Faults& faults) {
  std::vector<ExactSplits> exact;
  for (const MeshAxis& axis : plan.mesh) exact.emplace_back(plan.split, axis.name);
  for (size_t i = 0; i < model.ops.size() && faults.empty(); ++i) {
    std::map<int, int64_t> parts;
    for (size_t axis = 0; axis < exact.size(); ++axis) {
      const SplitRule* rule = exact[axis].find(model.ops[i].name);
      if (!rule) continue;
      std::optional<AxisChoice> choice = parse_choice(atoms.ops[i], rule->as);
      if (!choice) {
        faults.push_back(fmt::format("split: {} cannot run as \"{}\" over {}; try \"whole\"",
                                     model.ops[i].name, rule->as, rule->axis));
        return;
      }
      if (choice->loop < 0) continue;
      int64_t& count = parts.try_emplace(choice->loop, 1).first->second;
      count *= plan.mesh[axis].size;
      if (int64_t size = atoms.ops[i].loops[choice->loop].size; size < count)
        faults.push_back(fmt::format("split: {} as \"{}\" has length {}, which cannot feed {} pieces",
                                     model.ops[i].name, rule->as, size, count));
    }
  }
}

/// A leaf that a rule cuts parameters at exists in all of them, and is long enough.
void check_leaf(const Plan& plan, const StoreRule& rule, const std::string& where, const Model& model,
                const Atoms& atoms, Faults& faults) {
  std::optional<AxisLayout> cut = parse_leaf(rule.leaf);
  for (size_t t = 0; t < model.tensors.size() && faults.empty(); ++t) {
    if (model.tensors[t].role != Role::kParameter || !matches(rule.params, model.tensors[t].name)) continue;
    const auto& dims = atoms.dims[t];
    bool exists = cut && cut->dim < static_cast<int>(dims.size()) &&
                  cut->leaf < static_cast<int>(dims[cut->dim].size());
    int64_t size = 1;
    for (const MeshAxis& axis : plan.mesh)
      if (axis.name == rule.axis) size = axis.size;
    if (!exists || atoms.sizes[dims[cut->dim][cut->leaf].value] < size)
      faults.push_back(fmt::format("{}: {} has no leaf \"{}\" that could be sharded over {}", where,
                                   model.tensors[t].name, rule.leaf, size));
  }
}

void check_loop(const Plan& plan, size_t i, const Model& model, const Atoms& atoms,
                const std::vector<std::string>& ops, Faults& faults) {
  const LoopRule& rule = plan.loops[i];
  std::string where = fmt::format("loops: {}", rule.name);
  if (rule.size < 2) faults.push_back(fmt::format("{}: needs at least 2 pieces", where));
  for (size_t j = 0; j < i; ++j)
    if (plan.loops[j].name == rule.name && plan.loops[j].size != rule.size)
      faults.push_back(fmt::format("{}: has {} pieces and elsewhere {}; give one of them another name", where,
                                   rule.size, plan.loops[j].size));
  bool any = false;
  for (const std::string& pattern : rule.ops)
    any |= std::any_of(ops.begin(), ops.end(), [&](const std::string& op) { return matches(pattern, op); });
  if (!any)
    faults.push_back(fmt::format("{}: no op of this model is called {}; ops are module.path/op", where,
                                 fmt::join(rule.ops, " or ")));
  for (const std::string& atom : rule.atoms) find_atom(model, atoms, atom, where);
}

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

void check_groups(const Plan& plan, const Model& model, Faults& faults) {
  std::vector<std::string> trained;
  for (const auto& [parameter, gradient] : model.gradients) trained.push_back(whole_name(model, parameter));
  for (size_t g = 0; g < plan.optimizer.groups.size(); ++g)
    for (const std::string& pattern : plan.optimizer.groups[g].params)
      if (std::none_of(trained.begin(), trained.end(),
                       [&](const std::string& name) { return matches(pattern, name); }))
        faults.push_back(fmt::format("optimizer.groups[{}]: no trained parameter is called \"{}\"{}", g,
                                     pattern, did_you_mean(pattern, trained)));
}

void check_loss_scale(const Plan& plan, const Model& model, Faults& faults) {
  if (plan.optimizer.precision.loss_scale == 0) return;
  if (plan.optimizer.name == "none")
    faults.push_back(
        "precision.loss_scale: without an optimizer nobody takes the scale out of the gradients; leave the "
        "scale out or choose an optimizer");
  if (std::string why = unscalable(model); !why.empty())
    faults.push_back(fmt::format("precision.loss_scale: {}; leave the scale out", why));
}

/// A block has ops, and so has every pattern of what is kept of it. Where all is well, ops after the last
/// that is looked for are not looked at: large models have a block for every layer.
void check_recompute(const RecomputeRule& rule, const std::string& where, const Model& model,
                     Faults& faults) {
  std::vector<std::string> block, missing = rule.keep;
  for (const Op& op : model.ops) {
    if (!block.empty() && missing.empty()) return;
    std::string name(whole_op(op.name));
    if (op.backward || !any_matches(rule.ops, name)) continue;
    block.push_back(name);
    std::erase_if(missing, [&](const std::string& pattern) { return matches(pattern, name); });
  }
  if (block.empty())
    faults.push_back(fmt::format("{}: no forward op of this model is called {}; ops are module.path/op",
                                 where, fmt::join(rule.ops, " or ")));
  for (const std::string& pattern : missing)
    if (!block.empty())
      faults.push_back(fmt::format("{}: keep: none of its ops is called \"{}\"; one of them is {}", where,
                                   pattern, block.back()));
}

}  // namespace

std::vector<std::string> check(const Plan& plan, const Model& model, const Atoms& atoms) {
  Faults faults;
  if (!plan.model.empty() && plan.model != fingerprint(model))
    faults.push_back(fmt::format("model: this plan was made for {}, the model is {}; make the plan again",
                                 plan.model, fingerprint(model)));
  std::vector<std::string> ops;
  for (const Op& op : model.ops) ops.push_back(op.name);
  check_mesh(plan, faults);
  check_stages(plan, ops, faults);
  check_placed(plan, model, faults);
  for (size_t i = 0; i < plan.split.size(); ++i) {
    check_axis(plan, plan.split[i].axis, fmt::format("split[{}]", i), faults);
    check_pattern(plan.split[i].ops, ops, fmt::format("split[{}]", i), faults);
  }
  check_micro_batches(plan, model, atoms, faults);
  if (faults.empty()) check_exact(plan, model, atoms, faults);
  for (size_t i = 0; i < plan.split.size() && faults.empty(); ++i)
    check_splittable(plan.split[i], fmt::format("split[{}]", i), model, atoms, faults);
  for (size_t i = 0; i < plan.loops.size(); ++i) check_loop(plan, i, model, atoms, ops, faults);
  check_groups(plan, model, faults);
  check_loss_scale(plan, model, faults);
  for (size_t i = 0; i < plan.recompute.size(); ++i)
    check_recompute(plan.recompute[i], fmt::format("recompute[{}]", i), model, faults);
  std::vector<std::string> params;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kParameter) params.push_back(tensor.name);
  for (size_t i = 0; i < plan.store.size(); ++i) {
    check_axis(plan, plan.store[i].axis, fmt::format("store[{}]", i), faults);
    if (plan.has_across() && plan.store[i].axis == plan.mesh[0].name)
      faults.push_back(
          fmt::format("store[{}]: axis \"{}\" lies across the stages, which each keep their own "
                      "parameters; choose another",
                      i, plan.store[i].axis));
    check_pattern(plan.store[i].params, params, fmt::format("store[{}]", i), faults);
    if (!plan.store[i].leaf.empty())
      check_leaf(plan, plan.store[i], fmt::format("store[{}]", i), model, atoms, faults);
  }
  std::vector<std::string> schedules = schedule_names();
  bool named = std::find(schedules.begin(), schedules.end(), plan.schedule) != schedules.end();
  if (plan.order.empty() && !named)
    faults.push_back(
        fmt::format("schedule: unknown \"{}\"{}", plan.schedule, did_you_mean(plan.schedule, schedules)));
  if (plan.microbatches < 1) faults.push_back("microbatches: needs to be at least 1");
  if (faults.empty()) check_lengths(plan, model, atoms, faults);
  return faults;
}

}  // namespace partita::plan
