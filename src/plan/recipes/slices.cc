#include "plan/recipes/slices.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "model/row.h"

namespace partita::plan {
namespace {

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

enum class Fit { kNone, kSparseSums, kSums, kPieces };

// What cutting an atom leaves of an op's result. Adding up the terms of a product costs about what joining
// its pieces does; a lookup's terms are as large as its result, and mostly zeros.
Fit fit_of(const Op& op, const OpLoops& loops, AtomId atom) {
  const Row* row = find_row(op.target);
  if (!row || row->sliced == Sliced::kNo) return Fit::kNone;
  for (const Loop& loop : loops.loops) {
    if (loop.atom != atom || loop.frozen) continue;
    bool sums = std::find(loop.roles.begin(), loop.roles.end(), LoopRole::kPartial) != loop.roles.end();
    return !sums ? Fit::kPieces : row->sliced == Sliced::kSums ? Fit::kSums : Fit::kSparseSums;
  }
  return Fit::kNone;
}

}  // namespace

std::optional<LoopRule> slice_rule(const Model& model, const Atoms& atoms, TensorId parameter,
                                   int64_t slices) {
  Readers readers = readers_of(model, parameter);
  auto fit_of_all = [&](AtomId atom) {
    Fit fit = Fit::kPieces;
    for (size_t i : readers.others) fit = std::min(fit, fit_of(model.ops[i], atoms.ops[i], atom));
    return fit;
  };
  std::tuple<bool, int64_t, Fit> best;
  AtomId chosen;
  for (const std::vector<AtomId>& leaves : atoms[parameter])
    for (AtomId atom : leaves) {
      int64_t length = atoms.sizes[atom.value];
      Fit fit = fit_of_all(atom);
      std::tuple here{fit > Fit::kSparseSums, length, fit};
      if (length < slices || fit == Fit::kNone || (chosen && here <= best)) continue;
      best = here, chosen = atom;
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

}  // namespace partita::plan
