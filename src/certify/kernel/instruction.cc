// An instruction is read here as a function of meanings, apart from who lives in which slot (put.h): what it
// makes then follows from its inputs alone, and can be read, and tried, kind by kind.
#include "certify/kernel/instruction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "certify/refuse.h"
#include "program/words.h"

namespace partita::certify {
namespace {

// Zeros belong to no tensor until somebody reads them as one.
void check_zeros(const Given& given, const std::vector<TensorId>& needed, const std::vector<Operand>& in) {
  for (size_t k = 0; k < in.size(); ++k) {
    bool fits = in[k].type->shape.size() == given.model[needed[k]].shape.size();
    if (in[k].meaning->addend.zero && fits && !given.rules.lies_as(needed[k], *in[k].type))
      refuse(Rule::kZeros, "zeros {} with strides [{}] stand for {}", to_text(*in[k].type),
             fmt::join(in[k].type->strides, ","), given.model[needed[k]].name);
  }
}

std::vector<const TensorType*> output_types(const Given& given, const Instr& instr) {
  std::vector<const TensorType*> types;
  const Op& op = given.model[instr.op];
  for (size_t o = 0; o < instr.out.size(); ++o) {
    if (!op.outputs[o] && instr.out[o].index >= 0)
      refuse(Rule::kTypes, "keeps output {}, which the op does not make", o);
    if (op.outputs[o] && !instr.types[o]) refuse(Rule::kTypes, "does not say the type of output {}", o);
    types.push_back(op.outputs[o] && instr.types[o] ? &given.type(instr.types[o]) : nullptr);
    if (types[o] && types[o]->shape.size() != given.model[op.outputs[o]].shape.size())
      refuse(Rule::kTypes, "makes {} as {}", given.model[op.outputs[o]].name, to_text(*types[o]));
  }
  return types;
}

std::vector<Known> computed(const Given& given, const Instr& instr, const std::vector<Holding>& in) {
  Call call = call_of(given, instr, in);
  std::vector<Known> made;
  for (Meaning& meaning : apply(given.rules, instr.op, call.in, call.out))
    made.push_back(known(std::move(meaning)));
  check_call(given.rules, instr, call.inputs, call.in, call.out);
  if (instr.into < 0) return made;
  const Holding& there = in[instr.into];
  check_sides(given, instr, in);
  return {known(total(given, instr, *there.meaning, *made[0], given.type(there.type)))};
}

Meaning concatenated(const Given& given, const Instr& instr, const std::vector<Holding>& in) {
  const TensorType& whole = given.type(instr.types[0]);
  std::vector<const Meaning*> pieces;
  for (const Holding& value : in) {
    const TensorType& type = given.type(value.type);
    if (type.dtype != whole.dtype) refuse(Rule::kOneType, "joins {} into {}", to_text(type), to_text(whole));
    if (value.meaning->addend.zero) check_join(instr, type, whole);
    pieces.push_back(value.meaning.get());
  }
  return joined(given.rules, pieces, instr.cut, instr.pieces);
}

Meaning added(const Given& given, const Instr& instr, const std::vector<Holding>& in) {
  check_sides(given, instr, in);
  return total(given, instr, *in[0].meaning, *in[1].meaning, given.type(in[0].type));
}

Meaning squared(const Given& given, const std::vector<Holding>& in) {
  check_type(given.rules, {.squares = {{}}}, given.type(in[0].type));
  return given.gradients.with_squares(*in[0].meaning, *in[1].meaning);
}

std::vector<Known> optimized(const Given& given, const Instr& instr, const std::vector<Holding>& in) {
  std::vector<Operand> operands;
  for (size_t k = 0; k < in.size(); ++k)
    operands.push_back({in[k].meaning.get(), &given.type(in[k].type), instr.in[k]});
  size_t states = given.gradients.check_update(operands, instr.settings);
  auto updated = [](Meaning meaning) {
    meaning.version = 1;
    return known(std::move(meaning));
  };
  std::vector<Known> made = {updated(*in[0].meaning)};
  for (size_t k = 2; k < 2 + states; ++k) made.push_back(updated(*in[k].meaning));
  return made;
}

Meaning one_made_of(const Given& given, const At& at, const Instr& instr, const std::vector<Holding>& in) {
  switch (instr.kind) {
    case InstrKind::kSlice:
      return cut_out(given.rules, *in[0].meaning, instr.cut,
                     offset_of(instr.begin, instr.steps, given.coordinates(at.rank)), instr.length);
    case InstrKind::kConcat:
      return concatenated(given, instr, in);
    case InstrKind::kZeros:
      return {.addend = {.zero = true}};
    case InstrKind::kAdd:
      return added(given, instr, in);
    case InstrKind::kCast:
      return cast_to(given.rules, *in[0].meaning, given.type(in[0].type).dtype,
                     given.type(instr.types[0]).dtype);
    case InstrKind::kScale:
      return given.gradients.scaled(*in[0].meaning);
    case InstrKind::kClip:
      return given.gradients.clipped(*in[0].meaning);
    default:
      return squared(given, in);
  }
}

}  // namespace

std::vector<Known> made_of(const Given& given, const At& at, const std::vector<Holding>& in) {
  const Instr& instr = given.instr(at);
  if (instr.kind == InstrKind::kCompute) return computed(given, instr, in);
  if (instr.kind == InstrKind::kOptimize) return optimized(given, instr, in);
  if (instr.kind == InstrKind::kMove) return {in[0].meaning};
  return {known(one_made_of(given, at, instr, in))};
}

Call call_of(const Given& given, const Instr& instr, const std::vector<Holding>& in) {
  Call call{.out = output_types(given, instr)};
  call.inputs = operands_of(given.rules, instr);
  for (int k : call.inputs) call.in.push_back({in[k].meaning.get(), &given.type(in[k].type), instr.in[k]});
  given.gradients.check_scaled(call.in);
  check_zeros(given, given.rules[instr.op].in, call.in);
  return call;
}

void check_sides(const Given& given, const Instr& instr, const std::vector<Holding>& in) {
  bool adds = instr.kind == InstrKind::kAdd;
  const Holding& there = in[adds ? 0 : instr.into];
  const TensorType& type = given.type(there.type);
  const TensorType& more = given.type(adds ? in[1].type : instr.types[0]);
  if (adds ? type.shape != more.shape || type.dtype != more.dtype : type != more)
    refuse(Rule::kOneType, "adds {} to {}", to_text(more), to_text(type));
  if (adds && there.storage == in[1].storage)
    refuse(Rule::kApart, "reads {}, which shares its storage with {}, to which it adds", to_text(instr.in[1]),
           to_text(instr.in[0]));
  if (adds) return;
  for (int k : operands_of(instr))
    if (in[k].storage == there.storage)
      refuse(Rule::kApart, "reads {}, to which it adds", to_text(instr.in[k]));
}

Meaning addend_of(const Given& given, const Instr& instr, const Meaning& value, const TensorType& type) {
  if (!instr.sum) return value;
  given.gradients.check_scaled(value);
  return as_addend(given.rules, instr.sum, value, type);
}

Meaning total(const Given& given, const Instr& instr, const Meaning& there, const Meaning& more,
              const TensorType& type) {
  if (!instr.sum) return sum_of(given.rules, {&there, &more});
  Meaning a = addend_of(given, instr, there, type), b = addend_of(given, instr, more, type);
  return sum_of(given.rules, {&a, &b});
}

Known norm_read(const Given& given, const Instr& instr, const std::vector<Holding>& in) {
  if (instr.kind == InstrKind::kClip) return in[1].meaning;
  bool needs = instr.kind == InstrKind::kOptimize && given.program.optimizer.needs_norm();
  return needs ? in.back().meaning : nullptr;
}

}  // namespace partita::certify
