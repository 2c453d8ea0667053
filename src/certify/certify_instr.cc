#include "certify/certifier.h"
#include "certify/refuse.h"
#include "program/words.h"

namespace partita::certify {

void Certifier::happen_instr(const At& at) {
  const Instr& instr = instr_at(at);
  Ledger& ledger = ranks_[at.rank];
  ledger.enter(program_[action_at(at).body]);
  of_one_microbatch_ = false;
  if (!allowed(at, [&] { do_instr(at, instr, ledger); })) forget_outputs(at, instr);
  if (of_one_microbatch_ && !repeats_[action_at(at).body.value].adds(at.instr))
    courses_[at.rank].notes.reset();
  note(at, instr);
  drop_all(at, instr);
}

void Certifier::do_instr(const At& at, const Instr& instr, Ledger& ledger) {
  if (instr.kind == InstrKind::kWait) return ledger.finish(instr.in[0], microbatch(at));
  std::vector<Holding> in;
  in.reserve(instr.in.size());
  for (Slot slot : instr.in) in.push_back(ledger.read(slot, microbatch(at)));
  note_adding(at, instr, in);
  do_instr(at, instr, std::move(in), ledger);
}

void Certifier::do_instr(const At& at, const Instr& instr, std::vector<Holding> in, Ledger& ledger) {
  settle_lasting(at, instr, in);
  bool all_known =
      std::all_of(in.begin(), in.end(), [](const Holding& value) { return value.meaning != nullptr; });
  if (!all_known) return forget_outputs(at, instr);
  switch (instr.kind) {
    case InstrKind::kCompute:
      return compute(at, instr, in, ledger);
    case InstrKind::kSlice:
      return make(at, instr, ledger,
                  cut_out(rules_, *in[0].meaning, instr.cut,
                          offset_of(instr.begin, instr.steps, coordinates(at.rank)), instr.length));
    case InstrKind::kConcat:
      return concat(at, instr, in, ledger);
    case InstrKind::kZeros:
      return make(at, instr, ledger, {.addend = {.zero = true}});
    case InstrKind::kAdd:
      return add(at, instr, in, ledger);
    case InstrKind::kMove:
      check_named(instr, in[0]);
      return ledger.write(instr.out[0], microbatch(at), moved(at, in[0]));
    case InstrKind::kCast:
      return make(
          at, instr, ledger,
          cast_to(rules_, *in[0].meaning, program_[in[0].type].dtype, program_[instr.types[0]].dtype));
    case InstrKind::kScale:
      return rename(at, instr, ledger, in[0], remembered(at, known(gradients_.scaled(*in[0].meaning))));
    case InstrKind::kClip:
      return rename(at, instr, ledger, in[0], known(gradients_.clipped(*in[0].meaning, in[1].meaning)));
    case InstrKind::kSquares:
      check_type(rules_, {.squares = {{}}}, program_[in[0].type]);
      return rename(at, instr, ledger, in[0], known(gradients_.with_squares(*in[0].meaning, *in[1].meaning)));
    default:
      return optimize(at, instr, in, ledger);
  }
}

// Values of a micro-batch are known for all micro-batches at once, so that each call is looked at once.
// What lasts longer is of one in particular.
Known Certifier::settled_at(const Known& meaning, int32_t microbatch) {
  if (!meaning || !moves_in_time(*meaning)) return meaning;
  return known(in_microbatch(*meaning, microbatch));
}

Known Certifier::lasting(const At& at, Slot slot, const Known& meaning) const {
  return slot.space == Space::kRank ? settled_at(meaning, microbatch(at)) : meaning;
}

void Certifier::settle_lasting(const At& at, const Instr& instr, std::vector<Holding>& in) const {
  bool lasts = std::any_of(instr.out.begin(), instr.out.end(),
                           [](Slot slot) { return slot.space == Space::kRank && slot.index >= 0; });
  if (!lasts || instr.kind == InstrKind::kCompute) return;
  for (Holding& value : in) value.meaning = settled_at(value.meaning, microbatch(at));
}

void Certifier::concat(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
  for (const Holding& value : in) {
    if (program_[value.type].dtype != program_[instr.types[0]].dtype)
      refuse(Rule::kOneType, "joins {} into {}", to_text(program_[value.type]),
             to_text(program_[instr.types[0]]));
    if (value.meaning->addend.zero) check_join(instr, program_[value.type], program_[instr.types[0]]);
  }
  make(at, instr, ledger, at_once_or_now(at, in, [&](const std::vector<Holding>& values) {
         std::vector<const Meaning*> pieces;
         for (const Holding& value : values) pieces.push_back(value.meaning.get());
         return joined(rules_, pieces, instr.cut, instr.pieces);
       }));
}

Holding Certifier::moved(const At& at, Holding value) {
  value.sends = 0;
  value.made = at;
  return value;
}

void Certifier::make(const At& at, const Instr& instr, Ledger& ledger, Meaning meaning) {
  make(at, instr, ledger, remembered(at, known(std::move(meaning))));
}

void Certifier::make(const At& at, const Instr& instr, Ledger& ledger, const Known& meaning) {
  check_type(rules_, *meaning, program_[instr.types[0]]);
  ledger.write(instr.out[0], microbatch(at),
               {.meaning = meaning, .type = instr.types[0], .storage = ledger.allocate(), .made = at});
}

void Certifier::check_named(const Instr& instr, const Holding& old) const {
  if (!instr.types.empty() && program_[instr.types[0]] != program_[old.type])
    refuse(Rule::kTypes, "calls a storage of {} one of {}", to_text(program_[old.type]),
           to_text(program_[instr.types[0]]));
}

void Certifier::rename(const At& at, const Instr& instr, Ledger& ledger, const Holding& old, Known meaning) {
  Slot slot = instr.in[std::max(instr.into, 0)];
  check_type(rules_, *meaning, program_[old.type]);
  check_named(instr, old);
  ledger.change(old, slot, at);
  Holding value{.meaning = std::move(meaning), .type = old.type, .storage = old.storage, .made = at};
  value.seen = ledger.changes(old.storage);
  ledger.write(instr.out[0], microbatch(at), std::move(value), slot);
}

void Certifier::add(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
  const TensorType &a = program_[in[0].type], &b = program_[in[1].type];
  if (a.shape != b.shape || a.dtype != b.dtype)
    refuse(Rule::kOneType, "adds {} to {}", to_text(b), to_text(a));
  if (in[0].storage == in[1].storage)
    refuse(Rule::kApart, "reads {}, which shares its storage with {}, to which it adds", to_text(instr.in[1]),
           to_text(instr.in[0]));
  Known sum = at_once_or_now(at, in, [&](const std::vector<Holding>& values) {
    return known(total(instr, *values[0].meaning, *values[1].meaning, a));
  });
  bool lasts = instr.out[0].space == Space::kRank;  // and grows with every micro-batch
  rename(at, instr, ledger, in[0], lasts ? sum : remembered(at, sum));
}

Meaning Certifier::total(const Instr& instr, const Meaning& there, const Meaning& more,
                         const TensorType& type) const {
  if (!instr.sum) return sum_of(rules_, {&there, &more});
  Meaning a = addend(instr, there, type), b = addend(instr, more, type);
  return sum_of(rules_, {&a, &b});
}

Meaning Certifier::addend(const Instr& instr, const Meaning& value, const TensorType& type) const {
  gradients_.check_scaled(value);
  return as_addend(rules_, instr.sum, value, type);
}

void Certifier::accumulate(const At& at, const Instr& instr, const std::vector<Holding>& in,
                           const Known& made, Ledger& ledger) {
  const Holding& there = in[instr.into];
  const TensorType &type = program_[there.type], &added = program_[instr.types[0]];
  if (type != added) refuse(Rule::kOneType, "adds {} to {}", to_text(added), to_text(type));
  for (int k : operands_of(instr))
    if (in[k].storage == there.storage)
      refuse(Rule::kApart, "reads {}, to which it adds", to_text(instr.in[k]));
  Holding more = there;
  more.meaning = made;
  Known sum = at_once_or_now(at, {there, more}, [&](const std::vector<Holding>& values) {
    return known(total(instr, *values[0].meaning, *values[1].meaning, type));
  });
  rename(at, instr, ledger, there, std::move(sum));
}

void Certifier::compute(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
  const Applied& call = *at_once_or_now(
      at, in, [&](const std::vector<Holding>& values) { return &applied(at, instr, values); });
  if (instr.into >= 0) return accumulate(at, instr, in, lasting(at, instr.out[0], call.out[0]), ledger);
  for (size_t o = 0; o < call.out.size(); ++o) {
    if (instr.out[o].index < 0) continue;
    Holding value{.meaning = lasting(at, instr.out[o], call.out[o]), .type = instr.types[o], .made = at};
    value.storage = instr.view ? in[0].storage : ledger.allocate();
    value.seen = instr.view ? in[0].seen : 0;
    value.overlapping = instr.view && (in[0].overlapping || rules_[instr.op].overlapping ||
                                       bytes_of(program_[instr.types[o]]) > bytes_of(program_[in[0].type]));
    ledger.write(instr.out[o], microbatch(at), std::move(value));
  }
}

Applied& Certifier::last_at(const At& at) {
  std::vector<Applied>& body = applied_[at.rank][action_at(at).body.value];
  if (body.empty()) body.resize(program_[action_at(at).body].instrs.size());
  return body[at.instr];
}

Known Certifier::remembered(const At& at, Known meaning) {
  std::vector<Known>& last = last_at(at).out;
  if (last.empty() || (last[0] != meaning && *last[0] != *meaning)) last = {std::move(meaning)};
  return last[0];
}

const Applied& Certifier::applied(const At& at, const Instr& instr, const std::vector<Holding>& in) {
  Applied& last = last_at(at);
  bool same = last.in.size() == in.size() && !last.out.empty();
  for (size_t k = 0; same && k < in.size(); ++k)
    same = static_cast<int>(k) == instr.into || (last.in[k] == in[k].meaning && last.types[k] == in[k].type);
  if (same) return last;
  std::vector<const TensorType*> out = output_types(instr);
  std::vector<int> operands = operands_of(rules_, instr);
  std::vector<Operand> operand_values;
  for (int k : operands) operand_values.push_back({in[k].meaning.get(), &program_[in[k].type], instr.in[k]});
  gradients_.check_scaled(operand_values);
  check_zeros(rules_[instr.op].in, operand_values);
  std::vector<Meaning> meanings = apply(rules_, instr.op, operand_values, out);
  Applied call;
  for (const Holding& value : in) call.in.push_back(value.meaning), call.types.push_back(value.type);
  for (Meaning& meaning : meanings) call.out.push_back(known(std::move(meaning)));
  // Attributes depend on local shapes only.
  std::vector<TypeId>& verified = verified_[action_at(at).body.value][at.instr];
  if (verified.empty() || verified != call.types) check_call(rules_, instr, operands, operand_values, out);
  verified = call.types;
  return last = std::move(call);
}

// Zeros belong to no tensor until somebody reads them as one.
void Certifier::check_zeros(const std::vector<TensorId>& needed, const std::vector<Operand>& in) const {
  for (size_t k = 0; k < in.size(); ++k) {
    bool fits = in[k].type->shape.size() == model_[needed[k]].shape.size();
    if (in[k].meaning->addend.zero && fits && !rules_.lies_as(needed[k], *in[k].type))
      refuse(Rule::kZeros, "zeros {} with strides [{}] stand for {}", to_text(*in[k].type),
             fmt::join(in[k].type->strides, ","), model_[needed[k]].name);
  }
}

std::vector<const TensorType*> Certifier::output_types(const Instr& instr) const {
  std::vector<const TensorType*> types;
  const Op& op = model_[instr.op];
  for (size_t o = 0; o < instr.out.size(); ++o) {
    if (!op.outputs[o] && instr.out[o].index >= 0)
      refuse(Rule::kTypes, "keeps output {}, which the op does not make", o);
    if (op.outputs[o] && !instr.types[o]) refuse(Rule::kTypes, "does not say the type of output {}", o);
    types.push_back(op.outputs[o] && instr.types[o] ? &program_[instr.types[o]] : nullptr);
    if (types[o] && types[o]->shape.size() != model_[op.outputs[o]].shape.size())
      refuse(Rule::kTypes, "makes {} as {}", model_[op.outputs[o]].name, to_text(*types[o]));
  }
  return types;
}

void Certifier::optimize(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
  std::vector<Operand> operands;
  for (size_t k = 0; k < in.size(); ++k)
    operands.push_back({in[k].meaning.get(), &program_[in[k].type], instr.in[k]});
  const Meaning& parameter = *in[0].meaning;
  size_t states = gradients_.check_update(operands, instr.settings);
  if (program_.optimizer.needs_norm()) gradients_.check_norm(in.back().meaning);
  for (size_t k = 2; k < 2 + states; ++k) {
    ledger.change(in[k], instr.in[k], at);
    Meaning state = *in[k].meaning;
    state.version = 1;
    Holding value = in[k];
    value.meaning = known(std::move(state));
    value.seen = ledger.changes(value.storage);
    ledger.write(instr.in[k], microbatch(at), std::move(value), instr.in[k]);
  }
  Meaning updated = parameter;
  updated.version = 1;
  rename(at, instr, ledger, in[0], known(std::move(updated)));
}

}  // namespace partita::certify
