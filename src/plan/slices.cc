#include "plan/slices.h"

#include <algorithm>
#include <set>

#include "model/row.h"

namespace partita {
namespace {

constexpr std::string_view kSliced[] = {"aten.mm.default", "aten.addmm.default", "aten.bmm.default",
                                        "aten.embedding.default"};

/// Forward ops that read a parameter, itself or a view of it.
struct Readers {
  std::vector<size_t> views, others;
};

Readers readers_of(const Model& model, TensorId parameter) {
  Readers readers;
  std::set<TensorId> names{parameter};
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    std::vector<TensorId> ins = inputs_of(op);
    bool reads = std::any_of(ins.begin(), ins.end(), [&](TensorId id) { return names.contains(id); });
    if (op.backward || !reads) continue;
    (is_view(op) ? readers.views : readers.others).push_back(i);
    if (is_view(op)) names.insert(op.outputs.begin(), op.outputs.end());
  }
  return readers;
}

enum class Fit { kNone, kSums, kPieces };

/// What cutting an atom leaves of an op's result.
Fit fit_of(const OpLoops& op, AtomId atom) {
  for (const Loop& loop : op.loops) {
    if (loop.atom != atom || loop.frozen) continue;
    bool sums = std::find(loop.roles.begin(), loop.roles.end(), LoopRole::kPartial) != loop.roles.end();
    return sums ? Fit::kSums : Fit::kPieces;
  }
  return Fit::kNone;
}

}  // namespace

std::optional<LoopRule> slice_rule(const Model& model, const Atoms& atoms, TensorId parameter,
                                   int64_t slices) {
  Readers readers = readers_of(model, parameter);
  for (size_t i : readers.others)
    if (std::find(std::begin(kSliced), std::end(kSliced), model.ops[i].target) == std::end(kSliced))
      return std::nullopt;
  Fit best = Fit::kNone;
  AtomId chosen;
  for (const std::vector<AtomId>& leaves : atoms[parameter])
    for (AtomId atom : leaves) {
      if (atoms.sizes[atom.value] < slices) continue;
      Fit fit = Fit::kPieces;
      for (size_t i : readers.others) fit = std::min(fit, fit_of(atoms.ops[i], atom));
      bool longer = chosen && atoms.sizes[atom.value] > atoms.sizes[chosen.value];
      if (fit > best || (fit == best && fit != Fit::kNone && longer)) best = fit, chosen = atom;
    }
  if (!chosen || readers.others.empty()) return std::nullopt;
  LoopRule rule{.name = "slice", .size = slices, .atoms = {atoms.names[chosen.value]}};
  for (const auto* ops : {&readers.views, &readers.others})
    for (size_t i : *ops) {
      rule.ops.push_back(model.ops[i].name);
      rule.ops.push_back(model.ops[i].name + ".grad.*");
    }
  return rule;
}

}  // namespace partita
