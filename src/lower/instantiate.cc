// Boxes and types of a value are asked for several times at one place, and for all places of a rank in turn:
// the last answer for each value is kept. The view of an op in the whole model is made once and cut for each
// instance.
#include "lower/instantiate.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "model/row.h"
#include "program/words.h"

namespace partita::lower {
namespace {

size_t hash_of(const Body& body) {
  size_t hash = std::hash<std::string>()(body.name) ^ body.instrs.size();
  for (const Instr& instr : body.instrs)
    for (TypeId type : instr.types) hash = hash * 1099511628211u + static_cast<size_t>(type.value);
  return hash;
}

/// Tensor arguments become indices into the instruction's inputs, in order of appearance.
void number_tensors(Arg& arg, int32_t& next) {
  if (arg.kind == Arg::kTensor) arg.tensor = TensorId{next++};
  for (Arg& item : arg.items) number_tensors(item, next);
}

Cut cut_at(const Box& box, int dim, int leaf) {
  Cut cut{.dim = dim, .leaf = leaf};
  const std::vector<Interval>& leaves = box[dim];
  for (size_t l = 0; l < leaves.size(); ++l) {
    if (static_cast<int>(l) < leaf) cut.outer *= leaves[l].length();
    if (static_cast<int>(l) > leaf) cut.inner *= leaves[l].length();
  }
  return cut;
}

std::vector<int64_t> lengths(const Interval& whole, int64_t parts) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < parts; ++i) out.push_back(piece(whole, parts, i).length());
  return out;
}

}  // namespace

TypeId Library::type(const TensorType& type) {
  auto [at, fresh] = types_.emplace(std::make_tuple(type.shape, type.strides, type.dtype),
                                    TypeId{static_cast<int32_t>(program_.types.size())});
  if (fresh) program_.types.push_back(type);
  return at->second;
}

BodyId Library::body(const Body& body) {
  size_t hash = hash_of(body);
  auto [first, last] = bodies_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (program_[at->second] == body) return at->second;
  BodyId id{static_cast<int32_t>(program_.bodies.size())};
  program_.bodies.push_back(body);
  bodies_.emplace(hash, id);
  return id;
}

Instantiator::Instantiator(const Model& model, const Atoms& atoms, const Transformed& split,
                           const SiteCode& code, const Placement& placement, const Frees& frees,
                           Library& library)
    : model_(model),
      atoms_(atoms),
      split_(split),
      code_(code),
      placement_(placement),
      frees_(frees),
      library_(library),
      locals_(code.values.size()),
      whole_(model.ops.size()) {}

Box Instantiator::box(int value, const std::vector<int64_t>& coordinates) const {
  const Value& v = code_.values[value];
  if (!v.tensor) return {};
  Box whole = whole_box(atoms_, v.tensor);
  if (v.piece < 0) return box_of(whole, v.layout, split_.axis_sizes, coordinates);
  std::vector<int64_t> inside = coordinates;
  inside[split_.loop_axis[v.loop]] = v.piece;
  return box_of(whole, v.layout, split_.axis_sizes, inside);
}

const Shape& Instantiator::shape(int value) {
  Local& local = locals_[value];
  if (local.place != place_) local = {place_, shape_of(box(value)), {}};
  return local.shape;
}

template <class Visit>
void Instantiator::for_each_step(Visit visit) const {
  for (size_t axis = 0; axis < ranges_.size(); ++axis) {
    if (ranges_[axis].length() == 1) continue;
    std::vector<int64_t> next = coordinates_;
    ++next[axis];
    visit(axis, next);
  }
}

SpanBox Instantiator::span_box(int value) const {
  Box here = box(value);
  SpanBox out = as_spans(here);
  for_each_step([&](size_t axis, const std::vector<int64_t>& next) {
    Box moved = box(value, next);
    for (size_t d = 0; d < out.size(); ++d)
      for (size_t l = 0; l < out[d].size(); ++l) {
        int64_t step = moved[d][l].begin - here[d][l].begin;
        out[d][l].steps[axis] = step;
        out[d][l].begin -= step * coordinates_[axis];
        out[d][l].end -= step * coordinates_[axis];
      }
  });
  return out;
}

TypeId Instantiator::type(int value) {
  const Value& v = code_.values[value];
  if (!v.tensor) return library_.type({{}, {}, DType::kFloat64});
  const Tensor& tensor = model_[v.tensor];
  const Shape& here = shape(value);
  TypeId& type = locals_[value].type;
  if (!type) type = library_.type({here, compact_strides(here, tensor.strides), v.as.value_or(tensor.dtype)});
  return type;
}

Body Instantiator::body(const Segment& segment, const std::string& name) {
  check_interrupt();
  auto locals = placement_.locals.find(segment);
  Body body{.name = name, .locals = locals == placement_.locals.end() ? 0 : locals->second};
  const std::vector<CodeStep>& steps = code_.segments.at(segment);
  for (size_t k = 0; k < steps.size(); ++k) {
    if (!counts_here(steps[k])) continue;
    body.instrs.push_back(instr(steps[k]));
    body.instrs.back().drop = frees_.drops(placement_, segment, k, steps[k]);
  }
  return body;
}

// The first of the ranks that hold the same part of a gradient counts it. Nothing dies with a step that
// others leave out: a gradient and the sum of squares are read again by the update.
bool Instantiator::counts_here(const CodeStep& step) const {
  if (step.kind != InstrKind::kSquares) return true;
  return std::all_of(step.axes.begin(), step.axes.end(), [&](int axis) { return coordinates_[axis] == 0; });
}

Instr Instantiator::instr(const CodeStep& step) {
  Instr out{.kind = step.kind, .op = step.op, .settings = step.settings, .sum = step.sum};
  for (int in : step.in) out.in.push_back(placement_.slot(in));
  for (int value : step.out) {
    out.out.push_back(value < 0 ? Slot{} : placement_.slot(value));
    out.types.push_back(value < 0 ? TypeId{} : type(value));
  }
  if (step.kind == InstrKind::kCompute) compute(step, out);
  if (row_of(step.kind).collective) collective(step, out);
  if (step.kind == InstrKind::kSlice) slice(step, out);
  if (step.kind == InstrKind::kConcat) {
    out.cut = cut_at(box(step.out[0]), step.dim, step.leaf);
    for (int in : step.in) out.pieces.push_back(box(in)[step.dim][step.leaf].length());
  }
  // Replicated -> partials: the first rank of the axis keeps the value, the others hold zero.
  bool keeps_nothing = step.kind == InstrKind::kMove && !step.axes.empty() && !is_first(step);
  if (keeps_nothing) {
    out.kind = InstrKind::kZeros;
    out.in.clear();
  }
  return out;
}

bool Instantiator::is_first(const CodeStep& step) const {
  const Value& out = code_.values[step.out[0]];
  size_t axis = step.axes[0];
  return (axis > split_.time_axis() ? out.piece : coordinates_[axis]) == 0;
}

void Instantiator::compute(const CodeStep& step, Instr& out) {
  const Op& op = model_[step.op];
  OpView& whole = whole_[step.op.value];
  if (!whole.op) whole = view_of(model_, op);
  OpView local{.op = &op, .has_out = whole.has_out, .dtype = whole.dtype};
  size_t operands = step.in.size() - (step.accumulate ? 1 : 0);
  for (size_t k = 0; k < operands; ++k) local.in.push_back(shape(step.in[k]));
  for (int value : step.out) local.out.push_back(value < 0 ? Shape{} : shape(value));
  Op piece = localize(whole, local);
  int32_t next = 0;
  for (Arg& arg : piece.args) number_tensors(arg, next);
  for (auto& [name, arg] : piece.kwargs) number_tensors(arg, next);
  out.args = std::move(piece.args);
  out.kwargs = std::move(piece.kwargs);
  out.view = is_view(op);
  if (step.accumulate) out.into = static_cast<int32_t>(operands);
}

void Instantiator::collective(const CodeStep& step, Instr& out) {
  out.group = step.everyone ? group({kEveryone}) : group(step.axes);
  if (step.kind == InstrKind::kAllReduce) return;
  Box whole = box(step.kind == InstrKind::kAllGather ? step.out[0] : step.in[0]);
  if (step.kind == InstrKind::kAllToAll) whole[step.dim][step.leaf] = box(step.out[0])[step.dim][step.leaf];
  int64_t parts = split_.axis_sizes[step.axes[0]];
  out.cut = cut_at(whole, step.dim, step.leaf);
  out.pieces = lengths(whole[step.dim][step.leaf], parts);
  if (step.kind != InstrKind::kAllToAll) return;
  const AxisLayout& after = code_.values[step.out[0]].layout[step.axes[0]];
  out.scatter = cut_at(whole, after.dim, after.leaf);
  out.shares = lengths(whole[after.dim][after.leaf], parts);
}

void Instantiator::slice(const CodeStep& step, Instr& out) const {
  Box from = box(step.in[0]), to = box(step.out[0]);
  out.cut = cut_at(from, step.dim, step.leaf);
  auto begin_in = [&](const Box& from, const Box& to) {
    return to[step.dim][step.leaf].begin - from[step.dim][step.leaf].begin;
  };
  int64_t here = begin_in(from, to);
  out.begin = here;
  out.length = to[step.dim][step.leaf].length();
  for_each_step([&](size_t axis, const std::vector<int64_t>& next) {
    out.steps[axis] = begin_in(box(step.in[0], next), box(step.out[0], next)) - here;
    out.begin -= out.steps[axis] * coordinates_[axis];
  });
}

int32_t Instantiator::group(const std::vector<int>& axes) {
  auto found = std::find(groups_.begin(), groups_.end(), axes);
  if (found == groups_.end()) found = groups_.insert(groups_.end(), axes);
  return static_cast<int32_t>(found - groups_.begin());
}

}  // namespace partita::lower
