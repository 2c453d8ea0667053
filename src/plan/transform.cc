#include "plan/transform.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/names.h"
#include "layout/same_piece.h"
#include "model/row.h"
#include "plan/exact_splits.h"
#include "plan/recipes/home_stages.h"

namespace partita::plan {
namespace {

/// An op inside the loop asked for a value that is complete only after it.
struct Violation {
  size_t op;
  TensorId tensor;
};

class Transformer {
 public:
  Transformer(const Model& model, const Atoms& atoms, const Plan& plan, const std::set<size_t>& hoisted)
      : model_(model), atoms_(atoms), plan_(plan), hoisted_(hoisted) {
    for (const MeshAxis& axis : plan.mesh) out_.axis_sizes.push_back(axis.size);
    out_.axis_sizes.push_back(plan.microbatches);
    for (size_t axis = 0; axis < plan.mesh.size(); ++axis)
      for (const SplitRule& rule : plan.split)
        if (rule.axis == plan.mesh[axis].name && rule.as.empty())
          seeds_[axis].push_back({rule.ops, atoms_of(rule.atoms)});
    for (const MeshAxis& axis : plan.mesh) exact_.emplace_back(plan.split, axis.name);
    if (plan.microbatches > 1) seeds_[plan.mesh.size()].push_back({"*", atoms_of({plan.microbatch_atom})});
    add_loop_axes();
    level_.assign(model.tensors.size(), Level::kBefore);
    find_ancestry();
    find_spanning();
    store_tensors();
  }

  std::optional<Violation> run() {
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      check_interrupt();
      if (auto violation = place(i)) return violation;
    }
    return std::nullopt;
  }

  Transformed result() { return std::move(out_); }
  const std::vector<bool>& light() const { return out_.light; }

 private:
  struct Seeds {
    std::string ops;
    std::set<AtomId> atoms;
  };

  std::set<AtomId> atoms_of(const std::vector<std::string>& names) const {
    std::set<AtomId> atoms;
    for (const std::string& name : names) atoms.insert(find_atom(model_, atoms_, name, "split"));
    return atoms;
  }

  size_t time() const { return plan_.mesh.size(); }

  void add_loop_axes() {
    std::vector<std::string> names;
    for (const LoopRule& rule : plan_.loops) {
      auto found = std::find(names.begin(), names.end(), rule.name);
      if (found == names.end()) {
        found = names.insert(names.end(), rule.name);
        out_.axis_sizes.push_back(rule.size);
      }
      out_.loop_axis.push_back(time() + 1 + static_cast<size_t>(found - names.begin()));
      loop_atoms_.push_back(atoms_of(rule.atoms));
    }
    out_.loop_axes = names.size();
    made_in_.assign(model_.tensors.size(), {-1, false});
  }

  /// The rule whose loop may enclose this op: what any device may repeat is made once, whole.
  int rule_of(size_t i) const {
    for (size_t r = 0; r < plan_.loops.size() && !out_.light[i]; ++r)
      for (const std::string& pattern : plan_.loops[r].ops)
        if (matches(pattern, model_.ops[i].name)) return static_cast<int>(r);
    return -1;
  }

  /// How an input lies along a loop's axis for an op inside it: in pieces only where the same loop made it.
  AxisLayout have(TensorId id, size_t axis, size_t op) const {
    if (axis <= time()) return layout_[id.value][axis];
    auto [rule, backward] = made_in_[id.value];
    bool same = rule >= 0 && rule == rule_of(op) &&
                (plan_.loops[rule].through || backward == model_.ops[op].backward);
    return same ? layout_[id.value][axis] : AxisLayout{};
  }
  Layout replicated() const { return Layout(out_.axis_sizes.size()); }

  void find_ancestry() {
    std::vector<bool> trained(model_.tensors.size()), fed(model_.tensors.size());
    for (size_t t = 0; t < model_.tensors.size(); ++t) {
      trained[t] = model_.tensors[t].trainable;
      fed[t] = model_.tensors[t].role == Role::kBatchInput;
    }
    for (const Op& op : model_.ops) {
      bool light = true, fixed = true;
      for (TensorId id : inputs_of(op)) {
        light &= !trained[id.value];
        fixed &= !fed[id.value];
      }
      for (TensorId id : op.outputs)
        if (id) trained[id.value] = !light, fed[id.value] = !fixed;
      out_.light.push_back(light);
      fixed_.push_back(fixed);
    }
  }

  // Ops of stages on all devices split over the axis across. What any stage may repeat stays whole there.
  void find_spanning() {
    spans_ = spanning_ops(model_, plan_);
    spanned_.assign(model_.tensors.size(), true);
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      spans_[i] = spans_[i] && !out_.light[i];
      for (TensorId id : inputs_of(model_.ops[i])) spanned_[id.value] = spanned_[id.value] && spans_[i];
    }
  }
  bool is_across(size_t axis) const { return axis == 0 && plan_.has_across(); }

  // A parameter lies at rest the way its ops will split it; storage rules cut what is still whole.
  void store_tensors() {
    layout_.assign(model_.tensors.size(), replicated());
    for (size_t t = 0; t < model_.tensors.size(); ++t) {
      const Tensor& tensor = model_.tensors[t];
      if (tensor.role == Role::kValue) continue;
      for (size_t axis = 0; axis <= time(); ++axis) shard_by_seed(t, axis);
    }
    out_.updated = layout_;
    for (size_t t = 0; t < model_.tensors.size(); ++t)
      if (model_.tensors[t].role == Role::kParameter) apply_store_rules(t);
    out_.stored = layout_;
  }

  void shard_by_seed(size_t t, size_t axis) {
    if (is_across(axis) && !spanned_[t]) return;
    for (const Seeds& seeds : seeds_[axis])
      for (size_t d = 0; d < atoms_.dims[t].size(); ++d)
        for (size_t l = 0; l < atoms_.dims[t][d].size(); ++l)
          if (seeds.ops == "*" && seeds.atoms.contains(atoms_.dims[t][d][l])) {
            layout_[t][axis] = AxisLayout::shard(static_cast<int>(d), static_cast<int>(l));
            return;
          }
  }

  void apply_store_rules(size_t t) {
    for (const StoreRule& rule : plan_.store) {
      if (!matches(rule.params, model_.tensors[t].name)) continue;
      size_t axis = 0;
      while (plan_.mesh[axis].name != rule.axis) ++axis;
      AxisLayout& updated = out_.updated[t][axis];
      if (!rule.leaf.empty())
        updated = *parse_leaf(rule.leaf);
      else if (updated.kind == AxisLayout::kReplicated)
        updated = longest_free_leaf(t, axis);
      if (rule.what == "parameter") layout_[t][axis] = updated;
    }
  }

  // The longest leaf that no axis cuts yet: pieces stay as equal as they can be. One that a loop cuts only
  // where there is no other, since slices can be gathered one by one where ranks cut something else. Too
  // short for the axis: stays whole.
  AxisLayout longest_free_leaf(size_t t, size_t axis) const {
    AxisLayout apart = longest_free_leaf(t, axis, looped(t));
    return apart.kind == AxisLayout::kShard ? apart : longest_free_leaf(t, axis, {});
  }

  /// Atoms over which loops cut the ops that read this tensor.
  std::set<AtomId> looped(size_t t) const {
    std::set<AtomId> atoms;
    for (size_t i = 0; i < model_.ops.size() && !plan_.loops.empty(); ++i) {
      std::vector<TensorId> ins = inputs_of(model_.ops[i]);
      int rule =
          std::find(ins.begin(), ins.end(), TensorId{static_cast<int32_t>(t)}) == ins.end() ? -1 : rule_of(i);
      if (rule >= 0) atoms.insert(loop_atoms_[rule].begin(), loop_atoms_[rule].end());
    }
    return atoms;
  }

  AxisLayout longest_free_leaf(size_t t, size_t axis, const std::set<AtomId>& without) const {
    AxisLayout best;
    int64_t longest = out_.axis_sizes[axis] - 1;
    for (size_t d = 0; d < atoms_.dims[t].size(); ++d)
      for (size_t l = 0; l < atoms_.dims[t][d].size(); ++l) {
        AxisLayout here = AxisLayout::shard(static_cast<int>(d), static_cast<int>(l));
        const Layout& cut = out_.updated[t];
        bool taken = std::find(cut.begin(), cut.end(), here) != cut.end();
        int64_t size = atoms_.sizes[atoms_.dims[t][d][l].value];
        if (!taken && size > longest && !without.contains(atoms_.dims[t][d][l])) {
          longest = size;
          best = here;
        }
      }
    return best;
  }

  std::optional<Violation> place(size_t i) {
    const Op& op = model_.ops[i];
    std::vector<TensorId> ins = inputs_of(op);
    SplitOp split{.need = std::vector<Layout>(ins.size(), replicated()),
                  .made = std::vector<Layout>(op.outputs.size(), replicated())};
    bool inside = false;
    for (size_t axis = 0; axis <= time(); ++axis) {
      AxisChoice choice = choose(i, ins, axis);
      if (axis == time()) inside = choice.loop >= 0 || choice.pass;
      split_along(atoms_.ops[i], choice, axis, split);
    }
    split.level = level_of(i, ins, inside);
    if (split.level == Level::kInside || is_cut_for_its_readers(i)) place_in_loop(i, ins, split);
    if (auto violation = check_time(i, ins, split)) return violation;
    settle(ins, split);
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      if (!op.outputs[o]) continue;
      layout_[op.outputs[o].value] = split.made[o];
      level_[op.outputs[o].value] = split.level;
      made_in_[op.outputs[o].value] = {split.loop, op.backward};
    }
    out_.ops.push_back(std::move(split));
    return std::nullopt;
  }

  Level level_of(size_t i, const std::vector<TensorId>& ins, bool inside) const {
    if (plan_.microbatches == 1) return fixed_[i] ? Level::kBefore : Level::kInside;
    if (inside) return Level::kInside;
    for (TensorId id : ins)
      if (level_[id.value] != Level::kBefore) return Level::kAfter;
    return Level::kBefore;
  }

  // Inside the loop everything must be known inside it, and of a value that is made there only this
  // micro-batch is; after it, pieces cut over time are gone.
  std::optional<Violation> check_time(size_t i, const std::vector<TensorId>& ins,
                                      const SplitOp& split) const {
    if (plan_.microbatches == 1) return std::nullopt;
    for (size_t k = 0; k < ins.size(); ++k) {
      if (model_[ins[k]].role == Role::kBatchInput) continue;  // loaded in whatever pieces are asked for
      bool inside = split.level == Level::kInside;
      AxisLayout::Kind have = layout_[ins[k].value][time()].kind, want = split.need[k][time()].kind;
      bool late = inside && (level_[ins[k].value] == Level::kAfter ||
                             (have == AxisLayout::kPartial && want != AxisLayout::kPartial) ||
                             (made_inside(ins[k]) && have == AxisLayout::kShard && want != have));
      bool gone = !inside && have == AxisLayout::kShard;
      if (late || gone) return Violation{i, ins[k]};
      check_same_samples(i, ins[k], split.need[k]);
    }
    return std::nullopt;
  }

  bool made_inside(TensorId id) const {
    return model_[id].role == Role::kValue && level_[id.value] == Level::kInside;
  }

  // Ranks that each cut their own part of the batch into micro-batches never hold one of the whole batch.
  void check_same_samples(size_t i, TensorId tensor, const Layout& need) const {
    const Layout& have = layout_[tensor.value];
    if (have[time()].kind != AxisLayout::kShard || have[time()] != need[time()]) return;
    if (same_piece(have, need, time())) return;
    input_error(
        "plan: {} takes {} in other micro-batches than it is made in: an axis of the mesh splits the batch "
        "of one "
        "of them and something else of the other; try --microbatches 1, or give the batch an axis of its own",
        model_.ops[i].name, model_[tensor].name);
  }

  // Once a Partial had to be completed, everyone after reads the completed value.
  void settle(const std::vector<TensorId>& ins, const SplitOp& split) {
    for (size_t k = 0; k < ins.size(); ++k) {
      Layout& have = layout_[ins[k].value];
      for (size_t axis = 0; axis < time(); ++axis)
        if (have[axis].kind == AxisLayout::kPartial && split.need[k][axis].kind != AxisLayout::kPartial)
          have[axis] = split.need[k][axis];
    }
  }

  AxisChoice choose(size_t i, const std::vector<TensorId>& ins, size_t axis) {
    if (out_.axis_sizes[axis] == 1) return {};
    if (axis == time() && hoisted_.contains(i)) return {};
    if (is_across(axis) && !spans_[i]) return {};
    if (const SplitRule* rule = axis < time() ? exact_[axis].find(model_.ops[i].name) : nullptr)
      return *parse_choice(atoms_.ops[i], rule->as);
    for (const Seeds& seeds : seeds_[axis]) {
      if (!matches(seeds.ops, model_.ops[i].name)) continue;
      int loop = best_loop(i, ins, axis, seeds.atoms);
      if (loop >= 0) return {.loop = loop};
    }
    return {.pass = passing_set(i, ins, axis)};
  }

  void place_in_loop(size_t i, const std::vector<TensorId>& ins, SplitOp& split) const {
    int rule = rule_of(i);
    if (rule < 0) return;
    size_t axis = out_.loop_axis[rule];
    AxisChoice choice{.loop = best_loop(i, ins, axis, loop_atoms_[rule])};
    if (choice.loop < 0) choice.pass = passing_set(i, ins, axis);
    if (choice.loop < 0 && !choice.pass) return;
    split.loop = rule;
    split_along(atoms_.ops[i], choice, axis, split);
  }

  /// A view of a parameter that only ops of one loop read: each piece of it is a view of a piece.
  bool is_cut_for_its_readers(size_t i) const {
    int rule = rule_of(i);
    if (rule < 0 || loop_atoms_[rule].size() > 1 || !is_view(model_.ops[i]) || !fixed_[i]) return false;
    TensorId made = model_.ops[i].outputs[0];
    for (size_t reader = i + 1; reader < model_.ops.size(); ++reader) {
      std::vector<TensorId> ins = inputs_of(model_.ops[reader]);
      if (std::find(ins.begin(), ins.end(), made) == ins.end()) continue;
      if (rule_of(reader) != rule || best_loop(reader, ins, out_.loop_axis[rule], loop_atoms_[rule]) < 0)
        return false;
    }
    return true;
  }

  // The free loop over these atoms that moves the fewest elements. Example: with tokens split, a
  // product with a large weight gathers the tokens of its samples, one with a small weight the weight.
  int best_loop(size_t i, const std::vector<TensorId>& ins, size_t axis,
                const std::set<AtomId>& atoms) const {
    int best = -1;
    int64_t least = 0;
    const std::vector<Loop>& loops = atoms_.ops[i].loops;
    for (size_t l = 0; l < loops.size(); ++l) {
      if (loops[l].frozen || !atoms.contains(loops[l].atom) || loops[l].size < out_.axis_sizes[axis])
        continue;
      if (axis >= time() && loops[l].ins.empty()) continue;  // a constant is the same for every micro-batch
      int64_t moved = moved_elements(i, loops[l], ins, axis);
      if (best < 0 || moved < least) {
        best = static_cast<int>(l);
        least = moved;
      }
    }
    return best;
  }

  /// Elements of a value that ranks have in one micro-batch, together along one axis. What storage cuts of a
  /// parameter is put together where it is used.
  int64_t elements_beside(TensorId id, size_t axis) const {
    int64_t elements = numel(model_[id].shape);
    if (model_[id].role == Role::kParameter) return elements;
    for (size_t other = 0; other <= time(); ++other)
      if (other != axis && layout_[id.value][other].kind == AxisLayout::kShard)
        elements /= out_.axis_sizes[other];
    return elements;
  }

  int64_t moved_elements(size_t i, const Loop& loop, const std::vector<TensorId>& ins, size_t axis) const {
    int64_t moved = 0;
    for (size_t k = 0; k < ins.size(); ++k) {
      AxisLayout want;
      for (const Pos& pos : loop.ins)
        if (pos.operand == static_cast<int>(k)) want = AxisLayout::shard(pos.dim, pos.leaf);
      AxisLayout have = this->have(ins[k], axis, i);
      int64_t elements = elements_beside(ins[k], axis);
      if (have == want)
        moved -= want.kind == AxisLayout::kShard ? elements : 0;
      else if (have.kind != AxisLayout::kReplicated)
        moved += elements;
    }
    bool partial =
        std::any_of(loop.roles.begin(), loop.roles.end(), [](LoopRole r) { return r == LoopRole::kPartial; });
    return moved + (partial ? 1 : 0);
  }

  // A Partial passes through views, and where it meets others: several partials added first cost one sum, not
  // several. Elsewhere it is completed at once, since one value often feeds several ops. Over time only views
  // pass: anything else accumulates at once.
  const std::vector<int>* passing_set(size_t i, const std::vector<TensorId>& ins, size_t axis) const {
    bool view = is_view(model_.ops[i]);
    if (axis >= time() && !view) return nullptr;
    for (const std::vector<int>& set : atoms_.ops[i].linear) {
      bool all = view || set.size() > 1;
      for (size_t k = 0; k < ins.size(); ++k) {
        bool member = std::find(set.begin(), set.end(), static_cast<int>(k)) != set.end();
        all &= member == (have(ins[k], axis, i).kind == AxisLayout::kPartial);
      }
      if (all) return &set;
    }
    return nullptr;
  }

  const Model& model_;
  const Atoms& atoms_;
  const Plan& plan_;
  const std::set<size_t>& hoisted_;
  Transformed out_;
  std::map<size_t, std::vector<Seeds>> seeds_;
  std::vector<ExactSplits> exact_;  // by axis of the mesh
  std::vector<Layout> layout_;      // of every tensor, as later ops will find it
  std::vector<Level> level_;
  std::vector<bool> fixed_;            // per op: no batch input leads to it
  std::vector<bool> spans_, spanned_;  // per op: splits over the axis across; per tensor: all readers do
  std::vector<std::set<AtomId>> loop_atoms_;   // by LoopRule
  std::vector<std::pair<int, bool>> made_in_;  // by tensor: LoopRule, in backward
};

/// All ops that lead to the tensor.
std::set<size_t> ancestors(const Model& model, TensorId tensor) {
  std::set<TensorId> wanted{tensor};
  std::set<size_t> ops;
  for (size_t i = model.ops.size(); i-- > 0;) {
    const Op& op = model.ops[i];
    if (std::none_of(op.outputs.begin(), op.outputs.end(),
                     [&](TensorId id) { return id && wanted.contains(id); }))
      continue;
    ops.insert(i);
    for (TensorId id : inputs_of(op)) wanted.insert(id);
  }
  return ops;
}

}  // namespace

void split_along(const OpLoops& op, const AxisChoice& choice, size_t axis, SplitOp& split) {
  if (choice.pass) {
    for (int k : *choice.pass) split.need[k][axis] = AxisLayout::partial();
    for (Layout& made : split.made) made[axis] = AxisLayout::partial();
  }
  if (choice.loop < 0) return;
  const Loop& loop = op.loops[choice.loop];
  for (const Pos& pos : loop.ins) split.need[pos.operand][axis] = AxisLayout::shard(pos.dim, pos.leaf);
  for (const Pos& pos : loop.outs) split.made[pos.operand][axis] = AxisLayout::shard(pos.dim, pos.leaf);
  bool partial = false;
  for (size_t o = 0; o < loop.roles.size(); ++o) {
    if (loop.roles[o] != LoopRole::kPartial) continue;
    split.made[o][axis] = AxisLayout::partial();
    partial = true;
  }
  if (!partial) return;
  for (int k : op.addends)
    if (split.need[k][axis].kind == AxisLayout::kReplicated) split.need[k][axis] = AxisLayout::partial();
}

Transformed transform(const Model& model, const Atoms& atoms, const Plan& plan) {
  std::set<size_t> hoisted;
  while (true) {
    Transformer transformer(model, atoms, plan, hoisted);
    std::optional<Violation> violation = transformer.run();
    if (!violation) return transformer.result();
    // What only the batch decides (the number of labels, say) can be computed before the loop.
    std::set<size_t> ops = ancestors(model, violation->tensor);
    bool movable = std::all_of(ops.begin(), ops.end(), [&](size_t i) { return transformer.light()[i]; });
    size_t before = hoisted.size();
    hoisted.insert(ops.begin(), ops.end());
    if (!movable || hoisted.size() == before)
      input_error(
          "plan: {} needs all of {} before the last micro-batch has run, so this model cannot be cut into "
          "micro-batches; try --microbatches 1",
          model.ops[violation->op].name, model[violation->tensor].name);
  }
}

}  // namespace partita::plan
