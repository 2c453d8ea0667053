#include <algorithm>

#include "lower/code_writer.h"
#include "lower/convert.h"

namespace partita::lower {

void CodeWriter::take(Segment segment, const std::vector<int>& sites, size_t i) {
  int loop = split_.ops[i].loop;
  if (through_[i]) segment.kind = Segment::kForward;
  bool same = loop >= 0 && pending_.loop == loop && pending_.segment == segment;
  bool waits = reads_pending(i);
  // While a loop that goes through to backward is open, what reads its results waits for its end.
  if (loop < 0 && waits && goes_through(pending_.loop, pending_.segment)) {
    pending_.later.emplace_back(segment, i);
    return;
  }
  if (!pending_.ops.empty() && (same ? needs_it_whole(i) : loop >= 0 || waits)) {
    run_pending();
    same = false;
  }
  if (loop < 0) {
    for (int site : sites) emit(site, segment, i);
    return;
  }
  if (!same) pending_ = {loop, segment, {}, {}};
  pending_.ops.push_back(i);
  // What does not wait for it would be run early, and make again what all of backward needs.
  if (goes_through(loop, segment) && ends_loop(i)) run_pending();
}

bool CodeWriter::ends_loop(size_t i) const {
  return std::none_of(split_.ops.begin() + static_cast<ptrdiff_t>(i) + 1, split_.ops.end(),
                      [&](const SplitOp& op) { return op.loop == split_.ops[i].loop; });
}

bool CodeWriter::goes_through(int loop, const Segment& segment) const {
  return loop >= 0 && plan_.loops[loop].through && segment.stage == assigned_.loss_stage &&
         segment.kind == Segment::kForward;
}

// Backward can follow forward at once only where the loss is made; elsewhere it waits for other stages. What
// reads a gradient that no piece makes alone (that of a softmax over all tokens, in pieces of tokens) waits
// for backward too.
void CodeWriter::find_through() {
  through_.assign(model_.ops.size(), false);
  auto at_once = [&](TensorId id) {
    int producer = producer_[id.value];
    if (producer < 0 || split_.ops[producer].level != Level::kInside) return true;
    return !model_.ops[producer].backward || through_[producer];
  };
  for (size_t i = 0; i < model_.ops.size(); ++i) {
    int loop = split_.ops[i].loop;
    if (!model_.ops[i].backward || loop < 0 || !plan_.loops[loop].through) continue;
    std::vector<TensorId> ins = inputs_of(model_.ops[i]);
    through_[i] = assigned_.stages[i] == std::vector{assigned_.loss_stage} &&
                  std::all_of(ins.begin(), ins.end(), at_once);
  }
}

bool CodeWriter::made_in(const std::vector<size_t>& ops, TensorId tensor) const {
  int producer = producer_[tensor.value];
  return producer >= 0 && std::find(ops.begin(), ops.end(), static_cast<size_t>(producer)) != ops.end();
}

bool CodeWriter::reads_pending(size_t i) const {
  std::vector<TensorId> ins = inputs_of(model_.ops[i]);
  std::vector<size_t> later;
  for (const auto& [segment, op] : pending_.later) later.push_back(op);
  return std::any_of(ins.begin(), ins.end(),
                     [&](TensorId id) { return made_in(pending_.ops, id) || made_in(later, id); });
}

// An op of the loop itself that needs other pieces than its own of what the loop makes: the loop ends, and
// another begins.
bool CodeWriter::needs_it_whole(size_t i) const {
  size_t axis = split_.loop_axis[pending_.loop];
  std::vector<TensorId> ins = inputs_of(model_.ops[i]);
  std::vector<size_t> later;
  for (const auto& [segment, op] : pending_.later) later.push_back(op);
  for (size_t k = 0; k < ins.size(); ++k) {
    if (made_in(later, ins[k])) return true;
    if (!made_in(pending_.ops, ins[k])) continue;
    if (!same_piece(made_of(ins[k]), split_.ops[i].need[k], axis)) return true;
  }
  return false;
}

void CodeWriter::run_pending() {
  Pending group = std::move(pending_);
  pending_ = {};
  if (group.ops.empty()) return;
  for (size_t i : group.ops) group_of_[i] = groups_.size();
  groups_.push_back(group.ops);
  for (int site : sites_of(group.segment)) run_loop(site, group.segment, group.loop, group.ops);
  for (const auto& [segment, op] : group.later)
    for (int site : sites_of(segment)) emit(site, segment, op);
}

// Writes the ops once for each piece. What others read is added up piece by piece, or joined at the end.
void CodeWriter::run_loop(int site, Segment segment, int loop, const std::vector<size_t>& ops) {
  Place before = place_;
  size_t axis = split_.loop_axis[loop];
  std::map<TensorId, std::vector<int>> made;  // by piece
  std::map<TensorId, int> sums;
  for (int piece = 0; piece < plan_.loops[loop].size; ++piece) {
    place_ = {loop, piece};
    for (size_t i : ops) {
      for (int id : emit(site, segment, i)) {
        if (id < 0 || !read_outside(segment, value(site, id).tensor, ops)) continue;
        TensorId tensor = value(site, id).tensor;
        if (value(site, id).layout[axis].kind != AxisLayout::kPartial) {
          made[tensor].push_back(reduced_piece(site, segment, axis, id));
          continue;
        }
        std::optional<DType> as = sum_dtype(tensor);
        if (as) id = cast(site, segment, id, *as);
        auto [sum, fresh] = sums.try_emplace(tensor);
        if (fresh) {
          Layout layout = value(site, id).layout;
          layout[axis] = AxisLayout{};
          sum->second = add_value(site, {.tensor = tensor, .layout = layout, .made = segment, .as = as});
          push(site, segment, {.kind = InstrKind::kZeros, .out = {sum->second}});
        }
        push(site, segment, {.kind = InstrKind::kAdd, .in = {sum->second, id}, .out = {sum->second}});
      }
    }
  }
  place_ = before;
  for (size_t i : ops)
    for (TensorId tensor : model_.ops[i].outputs)
      if (tensor) end_loop(site, segment, axis, tensor, made, sums);
}

// A piece of a gradient that is stored in pieces over ranks is reduced as soon as it is made, like the whole;
// where ranks split the leaf that the loop cuts and keep another one, once the pieces are joined.
int CodeWriter::reduced_piece(int site, Segment segment, size_t axis, int id) {
  TensorId tensor = value(site, id).tensor;
  const Layout& layout = value(site, id).layout;
  auto parameter = parameter_of_.find(tensor);
  bool summed = loops() ? layout[time()].kind == AxisLayout::kPartial : true;
  if (parameter == parameter_of_.end() || !reduced_each_time(parameter->second) || !summed) return id;
  Layout cut = split_.updated[parameter->second.value];
  bool apart = std::find(cut.begin(), cut.end(), layout[axis]) == cut.end();
  if (!apart || layout[axis].kind != AxisLayout::kShard || sum_dtype(tensor)) return id;
  cut[time()] = layout[time()];
  cut[axis] = layout[axis];
  return reachable(layout, cut) ? want(site, segment, tensor, cut) : id;
}

void CodeWriter::end_loop(int site, Segment segment, size_t axis, TensorId tensor,
                          const std::map<TensorId, std::vector<int>>& made,
                          const std::map<TensorId, int>& sums) {
  std::erase_if(have(site, tensor), [&](const Available& one) {
    return value(site, one.value).layout[axis].kind == AxisLayout::kPartial;
  });
  int whole = -1;
  if (auto sum = sums.find(tensor); sum != sums.end()) whole = sum->second;
  if (auto pieces = made.find(tensor); pieces != made.end())
    whole = join(site, segment, axis, pieces->second);
  if (whole < 0) return;
  have(site, tensor).push_back({whole, false});
  share(site, segment, whole);
  settle_output(site, segment, whole);
}

int CodeWriter::join(int site, Segment segment, size_t axis, const std::vector<int>& pieces) {
  const Value& first = value(site, pieces[0]);
  AxisLayout cut = first.layout[axis];
  if (cut.kind == AxisLayout::kReplicated) return pieces[0];
  Value whole{.tensor = first.tensor, .layout = first.layout, .made = segment};
  whole.layout[axis] = AxisLayout{};
  int id = add_value(site, std::move(whole));
  push(site, segment,
       {.kind = InstrKind::kConcat, .in = pieces, .out = {id}, .dim = cut.dim, .leaf = cut.leaf});
  return id;
}

// Does anything read it that cannot take the pieces of this loop as they are?
bool CodeWriter::read_outside(Segment segment, TensorId tensor, const std::vector<size_t>& ops) const {
  if (wanted_after_[tensor.value]) return true;
  return std::any_of(readers_[tensor.value].begin(), readers_[tensor.value].end(), [&](size_t reader) {
    bool again = segment.kind == Segment::kForward && made_again_for(reader, tensor, segment.stream);
    if (again || std::find(ops.begin(), ops.end(), reader) != ops.end()) return false;
    if (assigned_.stages[reader] != assigned_.stages[ops[0]]) return true;
    return split_.ops[reader].loop != split_.ops[ops[0]].loop || needs_other_pieces(tensor, reader);
  });
}

// Only its own site makes it again: backward of another stage has it sent from forward.
bool CodeWriter::made_again_for(size_t reader, TensorId tensor, int stream) const {
  if (!model_.ops[reader].backward || !dropped_[tensor.value]) return false;
  const std::vector<int>& stages = assigned_.stages[reader];
  return std::all_of(stages.begin(), stages.end(),
                     [&](int stage) { return is_home(sites_.of(stage, stream), tensor, stream); });
}

// In backward the same loop may read the pieces that forward left.
bool CodeWriter::needs_other_pieces(TensorId tensor, size_t reader) const {
  size_t axis = split_.loop_axis[split_.ops[reader].loop];
  const Layout& made = made_of(tensor);
  std::vector<TensorId> ins = inputs_of(model_.ops[reader]);
  for (size_t k = 0; k < ins.size(); ++k)
    if (ins[k] == tensor &&
        (made[axis].kind != AxisLayout::kShard || !same_piece(made, split_.ops[reader].need[k], axis)))
      return true;
  return false;
}

}  // namespace partita::lower
