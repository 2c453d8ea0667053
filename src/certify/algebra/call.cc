#include <cmath>

#include "certify/algebra/meaning.h"
#include "certify/refuse.h"
#include "model/json_rows.h"

namespace partita::certify {
namespace {

/// Equal, where tensors are equal if both are tensors: which ones is checked by their meanings.
bool same(const Arg& a, const Arg& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == Arg::kTensor) return true;
  // By their bits: -0.0 is another number than 0.0.
  if (a.kind == Arg::kFloat && std::isnan(a.number)) return std::isnan(b.number);
  if (a.kind == Arg::kFloat) return a.number == b.number && std::signbit(a.number) == std::signbit(b.number);
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  return a.integer == b.integer && a.text == b.text;
}

void need_same(const std::string& which, const Arg& found, const Arg& needed) {
  if (same(found, needed)) return;
  refuse(Rule::kArguments, "argument {} is {}, but this piece of the op needs {}", which, arg_to_json(found),
         arg_to_json(needed));
}

void compare(const Instr& instr, const Op& needed) {
  if (instr.args.size() != needed.args.size() || instr.kwargs.size() != needed.kwargs.size())
    return refuse(Rule::kArguments, "is called with {} arguments and {} keywords, needs {} and {}",
                  instr.args.size(), instr.kwargs.size(), needed.args.size(), needed.kwargs.size());
  for (size_t i = 0; i < needed.args.size(); ++i) need_same(fmt::to_string(i), instr.args[i], needed.args[i]);
  for (size_t i = 0; i < needed.kwargs.size(); ++i) {
    const auto& [name, arg] = needed.kwargs[i];
    if (instr.kwargs[i].first != name)
      refuse(Rule::kArguments, "has keyword {} in the place of {}", instr.kwargs[i].first, name);
    need_same(name, instr.kwargs[i].second, arg);
  }
}

}  // namespace

std::vector<int> operands_of(const Rules& rules, const Instr& instr) {
  std::vector<int> inputs = operands_of(instr);
  if (inputs.size() != rules[instr.op].in.size())
    stop(Rule::kOperands, "is called with {} tensors, needs {}", inputs.size(), rules[instr.op].in.size());
  return inputs;
}

void check_call(const Rules& rules, const Instr& instr, const std::vector<int>& operands,
                const std::vector<Operand>& in, const std::vector<const TensorType*>& out) {
  const OpRule& rule = rules[instr.op];
  OpView local{.op = rule.whole.op, .has_out = rule.whole.has_out, .dtype = rule.whole.dtype};
  for (const Operand& operand : in) local.in.push_back(operand.type->shape);
  for (size_t o = 0; o < out.size(); ++o) local.out.push_back(out[o] ? out[o]->shape : Shape{});
  compare(instr, localize(rule.whole, local));
  if (instr.view != rule.view)
    refuse(
        Rule::kViews, "{}",
        rule.view ? "makes a view, but is not marked as one" : "is marked as a view, but makes a new tensor");
  if (rule.view && (operands.empty() || operands[0] != 0))
    refuse(Rule::kViews, "is a view of its first operand, which must be the first input");
}

}  // namespace partita::certify
