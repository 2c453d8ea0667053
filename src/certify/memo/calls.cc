#include "certify/memo/calls.h"

#include "certify/kernel/instruction.h"

namespace partita::certify {
namespace {

/// Do its kind's results come again? Sums that last grow each time, and gradients are clipped once.
bool comes_again(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::kSlice:
    case InstrKind::kConcat:
    case InstrKind::kZeros:
    case InstrKind::kCast:
    case InstrKind::kScale:
      return true;
    default:
      return instr.kind == InstrKind::kAdd && instr.out[0].space != Space::kRank;
  }
}

}  // namespace

Calls::Calls(const Given& given)
    : given_(given),
      applied_(given.program.ranks.size(), std::vector<std::vector<Applied>>(given.program.bodies.size())) {
  for (const Body& body : given.program.bodies) verified_.emplace_back(body.instrs.size());
}

Answer Calls::make(const At& at, std::vector<Holding>& in) {
  const Instr& instr = given_.instr(at);
  if (instr.kind == InstrKind::kCompute) return make_op(at, in);
  if (lasts(instr)) settle_all_at(in, given_.microbatch(at));
  Answer answer = at_once_or_now(in, given_.microbatch(at), [&](const std::vector<Holding>& values) {
    return made_of(given_, at, values);
  });
  check_norm(instr, in);
  if (comes_again(instr)) answer.made[0] = remembered(at, std::move(answer.made[0]));
  return answer;
}

Answer Calls::make_op(const At& at, const std::vector<Holding>& in) {
  const Instr& instr = given_.instr(at);
  int32_t microbatch = given_.microbatch(at);
  Answer answer =
      at_once_or_now(in, microbatch, [&](const std::vector<Holding>& values) { return call(at, values); });
  for (size_t o = 0; o < answer.made.size(); ++o)
    if (instr.out[o].space == Space::kRank) answer.made[o] = settled_at(answer.made[o], microbatch);
  if (instr.into < 0) return answer;
  check_sides(given_, instr, in);
  const TensorType& type = given_.type(in[instr.into].type);
  Answer sum = at_once_or_now(
      {in[instr.into], {.meaning = answer.made[0]}}, microbatch, [&](const std::vector<Holding>& sides) {
        Meaning all = total(given_, instr, *sides[0].meaning, *sides[1].meaning, type);
        return std::vector<Known>{known(std::move(all))};
      });
  sum.of_now = sum.of_now || answer.of_now;
  return sum;
}

const std::vector<Known>& Calls::call(const At& at, const std::vector<Holding>& in) {
  const Instr& instr = given_.instr(at);
  Applied& last = last_at(at);
  bool same = last.in.size() == in.size() && !last.out.empty();
  for (size_t k = 0; same && k < in.size(); ++k)
    same = static_cast<int>(k) == instr.into || (last.in[k] == in[k].meaning && last.types[k] == in[k].type);
  if (same) return last.out;
  Call call = call_of(given_, instr, in);
  Applied now;
  for (const Holding& value : in) now.in.push_back(value.meaning), now.types.push_back(value.type);
  for (Meaning& meaning : apply(given_.rules, instr.op, call.in, call.out))
    now.out.push_back(known(std::move(meaning)));
  // Attributes depend on local shapes only.
  std::vector<TypeId>& verified = verified_[given_.action(at).body.value][at.instr];
  if (verified.empty() || verified != now.types)
    check_call(given_.rules, instr, call.inputs, call.in, call.out);
  verified = now.types;
  last = std::move(now);
  return last.out;
}

Known Calls::remembered(const At& at, Known meaning) {
  std::vector<Known>& last = last_at(at).out;
  if (last.empty() || (last[0] != meaning && *last[0] != *meaning)) last = {std::move(meaning)};
  return last[0];
}

Calls::Applied& Calls::last_at(const At& at) {
  std::vector<Applied>& body = applied_[at.rank][given_.action(at).body.value];
  if (body.empty()) body.resize(given_.body(at).instrs.size());
  return body[at.instr];
}

// All parameters are clipped by one norm.
void Calls::check_norm(const Instr& instr, const std::vector<Holding>& in) {
  Known norm = norm_read(given_, instr, in);
  if (!norm || norm == norm_) return;
  given_.gradients.check_norm(*norm);
  norm_ = norm;
}

}  // namespace partita::certify
