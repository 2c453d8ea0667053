#include "program/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/row.h"
#include "program/words.h"

namespace partita::program {
namespace {

template <class Items>
bool in_range(int64_t index, const Items& items) {
  return index >= 0 && index < static_cast<int64_t>(items.size());
}

class Checker {
 public:
  Checker(const Program& program, const Model& model, const Fold& fold)
      : program_(program), model_(model), fold_(fold) {}

  std::vector<std::string> run() {
    if (program_.microbatches < 1) say("the program has {} micro-batches", program_.microbatches);
    if (!fold_.empty()) check_fold();
    if (!wrong_.empty()) return std::move(wrong_);
    for (size_t t = 0; t < program_.types.size(); ++t) type(t);
    for (const Body& body : program_.bodies) check_body(body);
    for (size_t r = 0; r < program_.ranks.size(); ++r) check_rank(static_cast<int32_t>(r));
    return std::move(wrong_);
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    wrong_.push_back(where_ + fmt::format(text, std::forward<Args>(args)...));
  }

  /// The classes of a site are all of its ranks, each once.
  void check_fold() {
    size_t count = program_.ranks.size();
    if (fold_.classes.size() != count || fold_.group_axes.size() != count || fold_.loads.size() != count ||
        fold_.results.size() != count)
      return say("{} classes for {} programs", fold_.classes.size(), count);
    check_devices();
    if (!wrong_.empty()) return;
    std::vector<int64_t> ranks(fold_.devices.size());
    for (size_t c = 0; c < count; ++c) {
      const RankClass& mine = fold_.classes[c];
      const RankProgram& program = program_.ranks[c];
      bool right = in_range(mine.site, fold_.devices) && mine.coordinates.size() == fold_.axis_sizes.size() &&
                   fold_.group_axes[c].size() == program.groups.size() &&
                   fold_.loads[c].size() == program.loads.size() &&
                   fold_.results[c].size() == program.results.size();
      for (size_t a = 0; right && a < mine.coordinates.size(); ++a) {
        const Interval& range = mine.coordinates[a];
        right = range.begin >= 0 && range.begin < range.end && range.end <= fold_.axis_sizes[a] &&
                (a < kFoldAxes || range.length() == 1);
      }
      for (const auto& axes : fold_.group_axes[c])
        right &= std::set<int>(axes.begin(), axes.end()).size() == axes.size() &&
                 std::all_of(axes.begin(), axes.end(), [&](int a) { return in_range(a, fold_.axis_sizes); });
      if (!right) return say("class {} is not one of ranks of the mesh", c);
      ranks[mine.site] += fold_.ranks(static_cast<int32_t>(c));
      for (size_t other = 0; other < c; ++other)
        if (meets(mine, fold_.classes[other])) say("classes {} and {} share ranks", other, c);
    }
    for (size_t s = 0; s < ranks.size(); ++s)
      if (ranks[s] != static_cast<int64_t>(fold_.devices[s].size()))
        say("site {} has {} ranks, its classes have {}", s, fold_.devices[s].size(), ranks[s]);
  }

  /// Every place of the mesh has a device at every site, and every device one place.
  void check_devices() {
    size_t total = 0, places = 1;
    for (const auto& site : fold_.devices) total += site.size();
    for (int64_t size : fold_.axis_sizes)  // whatever is larger than all of them together is too large
      places = std::min(places * std::min<size_t>(size, total + 1), total + 1);
    std::vector<bool> seen(total);
    for (const auto& site : fold_.devices) {
      if (site.size() != places) return say("a site has {} devices for a mesh of other size", site.size());
      for (int32_t device : site) {
        if (!in_range(device, seen) || seen[device]) return say("device {} has no place, or two", device);
        seen[device] = true;
      }
    }
  }

  static bool meets(const RankClass& a, const RankClass& b) {
    bool met = a.site == b.site;
    for (size_t k = 0; met && k < a.coordinates.size(); ++k)
      met = a.coordinates[k].begin < b.coordinates[k].end && b.coordinates[k].begin < a.coordinates[k].end;
    return met;
  }

  void type(size_t t) {
    const TensorType& type = program_.types[t];
    if (type.shape.size() != type.strides.size()) say("type {} has a stride too many or too few", t);
  }

  void check_body(const Body& body) {
    for (size_t i = 0; i < body.instrs.size(); ++i) {
      const Instr& instr = body.instrs[i];
      where_ = fmt::format("body {}, instruction {} ({}): ", body.name, i, row_of(instr.kind).name);
      operands(instr);
      for (const auto* slots : {&instr.in, &instr.out, &instr.drop})
        for (Slot slot : *slots)
          if (slot.space == Space::kLocal && slot.index >= body.locals)
            say("slot {} of {} locals", to_text(slot), body.locals);
      if (instr.kind == InstrKind::kCompute) call(instr);
      if (instr.later && !row_of(instr.kind).collective) say("is started, but is no collective");
      if (instr.later && !instr.drop.empty()) say("drops what is under way; let its wait drop it");
      bool numbers = instr.settings == 0 || (instr.kind == InstrKind::kOptimize &&
                                             in_range(instr.settings - 1, program_.optimizer.groups));
      if (!numbers)
        say("names settings {} of an optimizer with {} groups", instr.settings,
            program_.optimizer.groups.size());
      bool adds = instr.kind == InstrKind::kCompute || instr.kind == InstrKind::kAdd;
      if (instr.sum && !adds) say("is no addition, but names one");
      if (instr.sum && !in_range(instr.sum.value, model_.ops))
        say("names op {}, which the model does not have", instr.sum.value);
    }
    where_.clear();
  }

  /// Where a master copy is possible, the parameter's dtype decides whether there is one.
  size_t optimize_inputs(size_t given) const {
    const OptimizerSpec& optimizer = program_.optimizer;
    size_t least = 2 + optimizer_states(optimizer) + (optimizer.needs_norm() ? 1 : 0);
    return optimizer.precision.master && given == least + 1 ? given : least;
  }

  void operands(const Instr& instr) {
    const InstrRow& row = row_of(instr.kind);
    size_t inputs = row.in >= 0 ? row.in : instr.in.size();
    if (instr.kind == InstrKind::kOptimize) inputs = optimize_inputs(instr.in.size());
    if (row.pieces && !row.collective) inputs = std::max<size_t>(1, instr.pieces.size());
    if (instr.in.size() != inputs) say("has {} inputs, needs {}", instr.in.size(), inputs);
    if (row.out >= 0 && instr.out.size() != static_cast<size_t>(row.out))
      say("has {} outputs, needs {}", instr.out.size(), row.out);
    if (is_typed(row) && instr.types.size() != instr.out.size())
      say("has {} types for {} outputs", instr.types.size(), instr.out.size());
    for (size_t k = 0; k < instr.types.size(); ++k) {
      bool made = k < instr.out.size() && instr.out[k].index >= 0;
      if (instr.types[k] || made)
        if (!in_range(instr.types[k].value, program_.types))
          say("names type {}, which does not exist", instr.types[k].value);
    }
    for (Slot slot : instr.in)
      if (slot.index < 0) say("reads a slot without a number");
    for (Slot slot : instr.out)
      if (slot.index < 0 && instr.kind != InstrKind::kCompute) say("writes a slot without a number");
    for (Slot slot : instr.drop)
      if (slot.index < 0) say("drops a slot without a number");
    for (const Cut& cut : {instr.cut, instr.scatter})
      if (cut.dim < 0 || cut.leaf < 0) say("cuts leaf {} of dimension {}", cut.leaf, cut.dim);
    if (row.shares && instr.shares.size() != instr.pieces.size())
      say("has {} shares of {} pieces", instr.shares.size(), instr.pieces.size());
  }

  void call(const Instr& instr) {
    if (!in_range(instr.op.value, model_.ops))
      return say("names op {}, which the model does not have", instr.op.value);
    for (const Arg& arg : instr.args) argument(arg, instr);
    for (const auto& [name, arg] : instr.kwargs) argument(arg, instr);
    if (instr.into >= 0 || instr.sum) accumulation(instr);
    if (instr.out.size() != model_[instr.op].outputs.size())
      say("has {} outputs, {} has {}", instr.out.size(), model_[instr.op].name,
          model_[instr.op].outputs.size());
  }

  void accumulation(const Instr& instr) {
    if (!in_range(instr.into, instr.in)) return say("adds to input {} of {}", instr.into, instr.in.size());
    std::vector<int32_t> operands = operands_of(instr);
    if (std::find(operands.begin(), operands.end(), instr.into) != operands.end())
      say("reads input {}, to which it adds", instr.into);
    if (accumulation_of(model_[instr.op]) == AccumulationKind::kNone)
      say("{} cannot add to what is there", model_[instr.op].target);
    if (instr.out.size() != 1 || instr.out[0].index < 0 || instr.view)
      say("adds to more or less than one tensor");
  }

  void argument(const Arg& arg, const Instr& instr) {
    if (arg.kind == Arg::kTensor && !in_range(arg.tensor.value, instr.in))
      say("has an argument that reads input {} of {}", arg.tensor.value, instr.in.size());
    for (const Arg& item : arg.items) argument(item, instr);
  }

  void check_rank(int32_t rank) {
    rank_ = rank;
    self_ = &program_.ranks[rank];
    where_ = fmt::format("rank {}: ", rank);
    for (const auto& group : self_->groups) check_group(group);
    for (const Load& load : self_->loads) check_load(load);
    for (const Result& result : self_->results) check_result(result);
    std::set<int32_t> seen;
    for (size_t a = 0; a < self_->actions.size(); ++a) {
      const Action& action = self_->actions[a];
      where_ = fmt::format("rank {}, action {} ({}): ", rank, a, name_of(action.kind));
      check_action(action);
      bool runs = action.kind == ActionKind::kRun && in_range(action.body.value, program_.bodies);
      if (runs && seen.insert(action.body.value).second) check_use(program_[action.body]);
    }
    where_.clear();
  }

  void check_group(const std::vector<int32_t>& group) {
    std::set<int32_t> members(group.begin(), group.end());
    bool known =
        std::all_of(group.begin(), group.end(), [&](int32_t r) { return in_range(r, program_.ranks); });
    if (!known || members.size() != group.size() || !members.contains(rank_))
      say("group [{}] must name different ranks, this one among them", fmt::join(group, ", "));
  }

  void check_slot(Slot slot) {
    int32_t count = slot.space == Space::kRank    ? self_->rank_slots
                    : slot.space == Space::kFrame ? self_->frame_slots
                                                  : 0;
    if (slot.index < 0 || slot.index >= count) say("slot {} of {}", to_text(slot), count);
  }

  void check_microbatch(int32_t microbatch) {
    if (microbatch < 0 || microbatch >= program_.microbatches)
      say("micro-batch {} of {}", microbatch, program_.microbatches);
  }

  void check_load(const Load& load) {
    check_slot(load.slot);
    check_microbatch(load.microbatch);
    if (!in_range(load.tensor.value, model_.tensors)) return say("loads tensor {}", load.tensor.value);
    if (!in_range(load.type.value, program_.types))
      say("loads {} as type {}", model_[load.tensor].name, load.type.value);
    int states = optimizer_states(program_.optimizer) + (program_.optimizer.precision.master ? 1 : 0);
    if (load.state >= states) say("loads optimizer state {} of {}", load.state, model_[load.tensor].name);
  }

  void check_result(const Result& result) {
    if (result.slot.space != Space::kRank)
      say("result {} lies in {}, needs a rank slot", name_of(result.kind), to_text(result.slot));
    check_slot(result.slot);
    if (!in_range(result.tensor.value, model_.tensors)) say("reports tensor {}", result.tensor.value);
  }

  void check_action(const Action& action) {
    check_microbatch(action.microbatch);
    if (action.kind == ActionKind::kRun) {
      if (!in_range(action.body.value, program_.bodies))
        say("body {} of {}", action.body.value, program_.bodies.size());
      return;
    }
    check_slot(action.slot);
    const ActionRow& row = row_of(action.kind);
    if (!row.talks) return;
    if (!in_range(action.peer, program_.ranks) || action.peer == rank_)
      say("its peer is rank {}", action.peer);
    if (row.makes && !in_range(action.type.value, program_.types)) say("receives type {}", action.type.value);
  }

  /// A body is shared by ranks; what it names outside itself must exist on each that runs it.
  void check_use(const Body& body) {
    for (const Instr& instr : body.instrs) {
      for (const auto* slots : {&instr.in, &instr.out, &instr.drop})
        for (Slot slot : *slots)
          if (slot.space != Space::kLocal && slot.index >= 0) check_slot(slot);
      if (!row_of(instr.kind).collective) continue;
      if (!in_range(instr.group, self_->groups)) {
        say("body {} speaks to group {} of {}", body.name, instr.group, self_->groups.size());
      } else if (row_of(instr.kind).pieces &&
                 static_cast<int64_t>(instr.pieces.size()) != fold_.members(program_, rank_, instr.group)) {
        say("body {} has {} pieces for a group of {}", body.name, instr.pieces.size(),
            fold_.members(program_, rank_, instr.group));
      }
    }
  }

  const Program& program_;
  const Model& model_;
  const Fold& fold_;
  std::vector<std::string> wrong_;
  std::string where_;
  int32_t rank_ = 0;
  const RankProgram* self_ = nullptr;
};

}  // namespace

std::vector<std::string> check(const Program& program, const Model& model, const Fold& fold) {
  return Checker(program, model, fold).run();
}

}  // namespace partita::program
