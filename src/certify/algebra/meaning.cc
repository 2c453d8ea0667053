#include "certify/algebra/meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "certify/refuse.h"
#include "layout/layout.h"
#include "program/span.h"
#include "program/words.h"

namespace partita::certify {
namespace {

std::string show(const Rules& rules, const Meaning& meaning) {
  return to_text(meaning, rules.model, rules.atoms);
}

std::string show_part(const Rules& rules, const Meaning& meaning) {
  return rules.model[meaning.tensor].name + show_spans(meaning.box);
}

void check_same_tensor(const Rules& rules, const Meaning& a, const Meaning& b) {
  if (a.squares.empty() != b.squares.empty())
    refuse(Rule::kOneTensor, "{} and {} cannot be put together", show(rules, a), show(rules, b));
  if (a.tensor != b.tensor || a.version != b.version || a.state != b.state || a.as != b.as ||
      a.scaled != b.scaled || a.clipped != b.clipped)
    refuse(Rule::kOneTensor, "{} and {} are not pieces of one tensor", show(rules, a), show(rules, b));
}

/// May elements of a view share memory, by the strides that it was captured with? What `expand` repeats is
/// seen by the sizes of its piece instead; an op without a row may do so in its own way.
bool overlaps(const Model& model, const Op& op) {
  bool known = find_row(op.target) != nullptr;
  for (TensorId id : op.outputs) {
    if (!id) continue;
    std::vector<std::pair<int64_t, int64_t>> steps;  // stride, size
    for (size_t d = 0; d < model[id].shape.size(); ++d)
      if (model[id].shape[d] > 1 && (model[id].strides[d] > 0 || !known))
        steps.emplace_back(model[id].strides[d], model[id].shape[d]);
    std::sort(steps.begin(), steps.end());
    int64_t reach = 0;
    for (const auto& [stride, size] : steps) {
      if (stride <= reach) return true;
      reach += stride * (size - 1);
    }
  }
  return false;
}

/// The leaf of a part that moves along an axis, as far as there is one.
const Span* moving_leaf(const SpanBox& part, int axis) {
  for (const auto& leaves : part)
    for (const Span& leaf : leaves)
      if (leaf.steps[axis] != 0) return &leaf;
  return nullptr;
}

bool moves_along(const Addend& addend, int axis) {
  for (const auto& [label, regions] : addend.terms)
    for (const Region& region : regions)
      for (const Span& span : region)
        if (span.steps[axis] != 0) return true;
  return false;
}

/// What the squares of all ranks of a class are of.
SpanBox union_of(const Rules& rules, const Meaning& meaning, const SpanBox& part, int axis,
                 const Interval& coordinates) {
  SpanBox whole = part;
  int moving = 0;
  for (auto& leaves : whole)
    for (Span& leaf : leaves) {
      if (leaf.steps[axis] == 0) continue;
      ++moving;
      if (!overlaps_along(leaf, axis, coordinates)) leaf = union_along(leaf, axis, coordinates);
    }
  if (moving != 1 || moving_leaf(whole, axis))
    refuse(Rule::kNorm, "{}: a part of a gradient would count {} times", show(rules, meaning),
           coordinates.length());
  return whole;
}

}  // namespace

std::string to_text(const Meaning& meaning, const Model& model, const Atoms& atoms) {
  if (meaning.addend.zero) return "zeros";
  if (!meaning.squares.empty())
    return fmt::format("the sum of squares of {} parts of gradients", meaning.squares.size());
  std::string text = meaning.state >= 0 ? fmt::format("optimizer state {} of ", meaning.state) : "";
  text += model[meaning.tensor].name + show_spans(meaning.box);
  if (meaning.version > 0 && meaning.state < 0) text += " after its update";
  if (meaning.as) text += fmt::format(" as {}", dtype_name(*meaning.as));
  if (meaning.clipped) text += " clipped";
  if (meaning.scaled) text += " times the loss scale";
  if (meaning.addend.partial())
    text += fmt::format(", a partial sum of {}", to_text(meaning.addend, model, atoms));
  return text;
}

Rules::Rules(const Model& model, const Atoms& atoms) : model(model), atoms(atoms) {
  for (const Op& op : model.ops) {
    OpRule rule{.in = inputs_of(op), .whole = view_of(model, op), .view = is_view(op)};
    rule.overlapping = rule.view && overlaps(model, op);
    rule.reads_apart = !relate(rule.whole).reads.empty();
    rules_.push_back(std::move(rule));
  }
  for (const Tensor& tensor : model.tensors) orders_.push_back(memory_order(tensor.strides));
}

bool Rules::lies_as(TensorId tensor, const TensorType& type) const {
  const std::vector<size_t>& order = orders_[tensor.value];
  if (numel(type.shape) == 0) return true;  // it lies nowhere
  int64_t next = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (type.strides[order[i]] != next) return false;
    next *= type.shape[order[i]];
  }
  return true;
}

bool moves_in_time(const Meaning& meaning) {
  return moving_leaf(meaning.box, kTime) || moves_along(meaning.addend, kTime);
}

Meaning in_microbatch(Meaning meaning, int32_t microbatch) {
  for (auto& leaves : meaning.box)
    for (Span& leaf : leaves) leaf = stand_at(leaf, kTime, microbatch);
  for (auto& [label, regions] : meaning.addend.terms)
    for (Region& region : regions)
      for (Span& span : region) span = stand_at(span, kTime, microbatch);
  return meaning;
}

Meaning sum_of(const Rules& rules, const std::vector<const Meaning*>& members) {
  Meaning sum = *members[0];
  for (size_t m = 1; m < members.size(); ++m) {
    const Meaning& next = *members[m];
    if (next.addend.zero) continue;
    if (sum.addend.zero) {
      sum = next;
      continue;
    }
    if (!sum.squares.empty() && !next.squares.empty()) {
      sum.squares.insert(sum.squares.end(), next.squares.begin(), next.squares.end());
      continue;
    }
    check_same_tensor(rules, sum, next);
    if (!meet(sum.box, next.box, sum.box))
      refuse(Rule::kOnePart, "{} and {} are different parts, they cannot be added", show_part(rules, sum),
             show_part(rules, next));
    try {
      sum.addend = std::move(sum.addend) + next.addend;
    } catch (const Clash& clash) {
      refuse(clash.rule, "adds up {}: {}", show_part(rules, sum), to_text(clash, rules.model, rules.atoms));
    }
  }
  return sum;
}

Meaning as_addend(const Rules& rules, OpId sum, const Meaning& meaning, const TensorType& type) {
  const Op& op = rules.model[sum];
  if (!is_plain_sum(rules.model, op))
    refuse(Rule::kAdditions, "adds as {} does, which is no sum of two tensors", op.name);
  if (meaning.addend.zero || meaning.tensor == op.outputs[0]) return meaning;
  const std::vector<TensorId>& in = rules[sum].in;
  size_t k = std::find(in.begin(), in.end(), meaning.tensor) - in.begin();
  if (k == in.size())
    stop(Rule::kAdditions, "adds {} as {} does, which does not read it", show(rules, meaning), op.name);
  Meaning zeros{.addend = {.zero = true}};
  std::vector<Operand> operands(2, {&zeros, &type, {}});
  operands[k].meaning = &meaning;
  return apply(rules, sum, operands, {&type})[0];
}

const Span& leaf_of(const Rules& rules, const Meaning& meaning, const Cut& cut) {
  bool exists = !meaning.addend.zero && meaning.squares.empty() &&
                static_cast<size_t>(cut.dim) < meaning.box.size() &&
                static_cast<size_t>(cut.leaf) < meaning.box[cut.dim].size();
  if (!exists)
    stop(Rule::kCuts, "cuts leaf {} of dimension {}, which {} does not have", cut.leaf, cut.dim,
         show(rules, meaning));
  const std::vector<Span>& leaves = meaning.box[cut.dim];
  int64_t outer = 1, inner = 1;
  for (size_t l = 0; l < leaves.size(); ++l) {
    if (!has_length(leaves[l])) refuse(Rule::kCuts, "the lengths of {} are not known", show(rules, meaning));
    if (l < static_cast<size_t>(cut.leaf)) outer *= leaves[l].length();
    if (l > static_cast<size_t>(cut.leaf)) inner *= leaves[l].length();
  }
  if (outer != cut.outer || inner != cut.inner)
    refuse(Rule::kCuts, "cuts dimension {} of {} as ({}, .., {}), needs ({}, .., {})", cut.dim,
           show(rules, meaning), cut.outer, cut.inner, outer, inner);
  return leaves[cut.leaf];
}

Meaning joined(const Rules& rules, const std::vector<const Meaning*>& members, const Cut& cut,
               const std::vector<int64_t>& pieces) {
  Meaning whole = *members[0];
  if (std::all_of(members.begin(), members.end(), [](const Meaning* one) { return one->addend.zero; }))
    return whole;
  int64_t size = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    const Meaning& next = *members[m];
    Span span = leaf_of(rules, next, cut);
    if (span.length() != pieces[m])
      refuse(Rule::kLengths, "member {} brings {}, a piece of {}; {} was declared", m, show(rules, next),
             span.length(), pieces[m]);
    size += span.length();
    if (m == 0) continue;
    check_same_tensor(rules, whole, next);
    if (next.addend != whole.addend)
      refuse(Rule::kOneLeaf, "joins {} and {}, which hold different addends", show(rules, whole),
             show(rules, next));
    Span& at = whole.box[cut.dim][cut.leaf];
    bool loose = is_anywhere(at) || is_anywhere(span);
    if (!loose && (at.end != span.begin || at.steps != span.steps))
      refuse(Rule::kOrder,
             "joins {} and then {}: the pieces do not follow each other in the order of the group",
             show(rules, whole), show(rules, next));
    SpanBox rest = next.box;
    int64_t length = at.length() + span.length();
    Span grown = loose ? anywhere(length) : Span{at.begin, at.begin + length, at.steps};
    rest[cut.dim][cut.leaf] = at;
    if (!meet(whole.box, rest, whole.box))
      refuse(Rule::kOneLeaf, "joins {} and {}, which differ in more than the leaf that is joined",
             show(rules, whole), show(rules, next));
    whole.box[cut.dim][cut.leaf] = grown;
  }
  int64_t all = rules.atoms.sizes[rules.atoms[whole.tensor][cut.dim][cut.leaf].value];
  if (size > all) refuse(Rule::kLengths, "joins {} of {} elements", size, all);
  Span& at = whole.box[cut.dim][cut.leaf];
  at = settled(at, all);
  return whole;
}

Meaning sum_along(const Rules& rules, const Meaning& meaning, int axis, const Interval& coordinates) {
  if (meaning.addend.zero || coordinates.length() == 1) return meaning;
  Meaning sum = meaning;
  for (auto& [tensor, part] : sum.squares) part = union_of(rules, meaning, part, axis, coordinates);
  if (!sum.squares.empty()) return sum;
  if (moving_leaf(meaning.box, axis))
    refuse(Rule::kOnePart, "{} are different parts, they cannot be added", show_part(rules, meaning));
  try {
    sum.addend = sum_along(meaning.addend, axis, coordinates);
  } catch (const Clash& clash) {
    refuse(clash.rule, "adds up {}: {}", show_part(rules, meaning), to_text(clash, rules.model, rules.atoms));
  }
  return sum;
}

Meaning joined_along(const Rules& rules, const Meaning& meaning, const Cut& cut, int axis,
                     const Interval& coordinates) {
  if (meaning.addend.zero || coordinates.length() == 1) return meaning;
  const Span& span = leaf_of(rules, meaning, cut);
  Meaning whole = meaning;
  whole.box[cut.dim][cut.leaf].steps[axis] = 0;
  if (moving_leaf(whole.box, axis) || moves_along(meaning.addend, axis))
    refuse(Rule::kOneLeaf, "joins {}, which differ in more than the leaf that is joined",
           show(rules, meaning));
  if (is_anywhere(span)) {
    whole.box[cut.dim][cut.leaf] = anywhere(span.length() * coordinates.length());
  } else {
    if (span.steps[axis] != span.length())
      refuse(Rule::kOrder, "joins {}: the pieces do not follow each other in the order of the group",
             show(rules, meaning));
    whole.box[cut.dim][cut.leaf] = union_along(span, axis, coordinates);
  }
  return whole;
}

/// Are all values along the dimension the same, so that any part of it is right? Then lengths of its leaves
/// may be open; check_type compares the sizes of all dimensions whose lengths are known.
static bool same_everywhere(const Meaning& meaning, const Cut& cut) {
  if (static_cast<size_t>(cut.dim) >= meaning.box.size()) return false;
  const std::vector<Span>& leaves = meaning.box[cut.dim];
  return std::any_of(leaves.begin(), leaves.end(), [](const Span& leaf) { return !has_length(leaf); }) &&
         std::all_of(leaves.begin(), leaves.end(), is_anywhere);
}

Meaning cut_out(const Rules& rules, const Meaning& whole, const Cut& cut, const Offset& begin,
                int64_t length) {
  if (whole.addend.zero || same_everywhere(whole, cut)) return whole;
  Span span = leaf_of(rules, whole, cut);
  if (begin.least < 0 || length < 0 || begin.most + length > span.length())
    refuse(Rule::kLengths, "takes {}:{} of {}, which is {} long there", begin.least, begin.most + length,
           show(rules, whole), span.length());
  Meaning piece = whole;
  Span& at = piece.box[cut.dim][cut.leaf];
  if (is_anywhere(span)) {
    at = anywhere(length);
    return piece;
  }
  at = {span.begin + begin.begin, span.begin + begin.begin + length, span.steps};
  for (int axis = 0; axis < kFoldAxes; ++axis) at.steps[axis] += begin.steps[axis];
  return piece;
}

void check_join(const Instr& instr, const TensorType& in, const TensorType& out) {
  TensorType whole = in;
  int64_t length = std::accumulate(instr.pieces.begin(), instr.pieces.end(), int64_t{0});
  bool exists = static_cast<size_t>(instr.cut.dim) < in.shape.size();
  if (exists) whole.shape[instr.cut.dim] = instr.cut.outer * length * instr.cut.inner;
  if (!exists || whole.shape != out.shape || whole.dtype != out.dtype)
    refuse(Rule::kZeros, "joins zeros {} along dimension {} into {}", to_text(in), instr.cut.dim,
           to_text(out));
}

void check_type(const Rules& rules, const Meaning& meaning, const TensorType& type) {
  if (meaning.addend.zero) return;
  if (!meaning.squares.empty()) {
    if (type.dtype != DType::kFloat64 || !type.shape.empty())
      refuse(Rule::kTypes, "keeps a sum of squares as {}", to_text(type));
    return;
  }
  DType dtype = meaning.as.value_or(rules.model[meaning.tensor].dtype);
  bool fits = type.dtype == dtype && type.shape.size() == meaning.box.size();
  for (size_t d = 0; fits && d < meaning.box.size(); ++d) {
    int64_t size = 1;
    bool known = true;
    for (const Span& leaf : meaning.box[d]) size *= leaf.length(), known &= has_length(leaf);
    if (known) fits = size == type.shape[d];
  }
  if (!fits)
    return refuse(Rule::kTypes, "makes {} of dtype {} as {}", show(rules, meaning), dtype_name(dtype),
                  to_text(type));
  if (!rules.lies_as(meaning.tensor, type))
    refuse(Rule::kStrides, "makes {} with strides [{}], needs [{}]", show(rules, meaning),
           fmt::join(type.strides, ","),
           fmt::join(compact_strides(type.shape, rules.model[meaning.tensor].strides), ","));
}

}  // namespace partita::certify
