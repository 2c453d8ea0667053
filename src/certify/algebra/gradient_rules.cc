#include "certify/algebra/gradient_rules.h"

#include <fmt/format.h>

#include "certify/algebra/coverage.h"
#include "certify/refuse.h"
#include "model/seed.h"
#include "program/span.h"
#include "program/words.h"

namespace partita::certify {
namespace {

bool is_real(DType dtype) { return is_floating(dtype) && !is_complex(dtype); }

}  // namespace

Meaning cast_to(const Rules& rules, const Meaning& meaning, DType from, DType to) {
  std::string shown = to_text(meaning, rules.model, rules.atoms);
  if (meaning.addend.zero || !meaning.squares.empty() || !is_real(from) || !is_real(to))
    stop(Rule::kCasts, "casts {}, which is no floating tensor", shown);
  if (meaning.state >= 0) refuse(Rule::kCasts, "casts {}, which keeps its dtype from step to step", shown);
  DType own = rules.model[meaning.tensor].dtype;
  if (dtype_bytes(to) < dtype_bytes(from) && !meaning.addend.complete())
    refuse(Rule::kCasts, "casts {} to {} before it is complete", shown, dtype_name(to));
  if (to != own && dtype_bytes(to) <= dtype_bytes(own))
    refuse(Rule::kCasts, "casts {} to {}, which cannot hold it", shown, dtype_name(to));
  Meaning out = meaning;
  out.as = to == own ? std::nullopt : std::optional(to);
  return out;
}

GradientRules::GradientRules(const Rules& rules, const OptimizerSpec& optimizer)
    : rules_(rules), optimizer_(optimizer), seed_(loss_gradient(rules.model)) {
  for (const auto& [parameter, gradient] : rules.model.gradients) {
    ++parameters_of_[gradient];
    gradient_of_[parameter] = gradient;
  }
}

void GradientRules::check_scale() const {
  if (optimizer_.precision.loss_scale == 0) return;
  if (optimizer_.name == "none")
    refuse(Rule::kScaling, "has a loss scale, which no optimizer takes out of the gradients");
  if (std::string why = unscalable(rules_.model); !why.empty())
    refuse(Rule::kScaling, "has a loss scale, but {}", why);
}

Meaning GradientRules::scaled(const Meaning& meaning) const {
  if (optimizer_.precision.loss_scale == 0)
    refuse(Rule::kScaling, "scales, but the program has no loss scale");
  if (meaning.tensor != seed_ || meaning.addend.zero)
    refuse(Rule::kScaling, "scales {}, which is not the gradient of the loss", show(meaning));
  if (meaning.scaled) refuse(Rule::kScaling, "scales the gradient of the loss twice");
  Meaning out = meaning;
  out.scaled = true;
  return out;
}

void GradientRules::check_scaled(const std::vector<Operand>& operands) const {
  for (const Operand& operand : operands) check_scaled(*operand.meaning);
}

void GradientRules::check_scaled(const Meaning& meaning) const {
  bool needed = optimizer_.precision.loss_scale > 0;
  if (meaning.tensor == seed_ && !meaning.addend.zero && meaning.scaled != needed)
    refuse(Rule::kScaled, "reads {}, needs it {} the loss scale", show(meaning),
           needed ? "times" : "without");
}

void GradientRules::check_gradient(const char* doing, const Meaning& meaning) const {
  if (meaning.addend.zero || !parameters_of_.contains(meaning.tensor) || !meaning.addend.complete())
    refuse(Rule::kSquares, "{} {}, needs a complete gradient", doing, show(meaning));
  if (meaning.clipped) refuse(Rule::kSquares, "{} {}, which is clipped already", doing, show(meaning));
  check_scaled(meaning);
}

Meaning GradientRules::with_squares(const Meaning& sum, const Meaning& gradient) const {
  if (!sum.addend.zero && sum.squares.empty()) refuse(Rule::kSquares, "adds squares to {}", show(sum));
  check_gradient("squares", gradient);
  Meaning out{.squares = sum.squares};
  out.squares.emplace_back(gradient.tensor, gradient.box);
  return out;
}

void GradientRules::check_norm(const Meaning& norm) const {
  if (norm.squares.empty()) refuse(Rule::kNorm, "takes {} for the norm of the gradients", show(norm));
  std::map<TensorId, std::vector<Box>> parts;
  for (const auto& [tensor, part] : norm.squares)
    for (Box& box : boxes_of(part)) parts[tensor].push_back(std::move(box));
  for (const auto& [gradient, count] : parameters_of_) {
    if (covers_times(whole_box(rules_.atoms, gradient), parts[gradient], count)) continue;
    int64_t counted = 0, all = count * numel(rules_.model[gradient].shape);
    for (const Box& box : parts[gradient]) counted += numel(box);
    refuse(Rule::kNorm,
           "uses the norm before it holds every part of {} {}: {} of its {} elements are counted",
           rules_.model[gradient].name, count == 1 ? "once" : fmt::format("{} times", count), counted, all);
  }
}

Meaning GradientRules::clipped(const Meaning& gradient) const {
  check_gradient("clips", gradient);
  Meaning out = gradient;
  out.clipped = true;
  return out;
}

size_t GradientRules::check_update(const std::vector<Operand>& in, int32_t settings) const {
  const Meaning& parameter = *in[0].meaning;
  auto found = gradient_of_.find(parameter.tensor);
  if (parameter.addend.zero || found == gradient_of_.end() || parameter.state >= 0)
    stop(Rule::kUpdates, "updates {}, which is not a trained parameter", show(parameter));
  if (parameter.version != 0) refuse(Rule::kUpdates, "updates {} a second time", show(parameter));
  if (int32_t own = settings_of(optimizer_, whole_name(rules_.model, parameter.tensor)); own != settings)
    refuse(Rule::kUpdates, "updates {} by settings {}, its own are {}", show(parameter), settings, own);
  check_own(parameter, *in[1].meaning, found->second);
  DType own = rules_.model[parameter.tensor].dtype, updated_in = updated_dtype(optimizer_, own);
  if (in[1].type->dtype != updated_in)
    refuse(Rule::kOwnGradient, "updates {} in {} with {}", show(parameter), dtype_name(updated_in),
           show(*in[1].meaning));
  size_t states = optimizer_states(optimizer_) + (has_master(optimizer_, own) ? 1 : 0);
  if (in.size() != 2 + states + (optimizer_.needs_norm() ? 1 : 0))
    refuse(Rule::kOwnStates, "updates {} with {} states", show(parameter), in.size() - 2);
  for (size_t k = 0; k < states; ++k) {
    const Meaning& state = *in[2 + k].meaning;
    if (state.tensor != parameter.tensor || state.state != static_cast<int32_t>(k) ||
        state.box != parameter.box || state.version != 0)
      refuse(Rule::kOwnStates, "updates {} with {}, needs its optimizer state {}", show(parameter),
             show(state), k);
  }
  return states;
}

void GradientRules::check_own(const Meaning& parameter, const Meaning& gradient, TensorId needed) const {
  if (gradient.addend.zero || gradient.tensor != needed || !gradient.squares.empty())
    refuse(Rule::kOwnGradient, "updates {} with {}, needs its gradient {}", show(parameter), show(gradient),
           rules_.model[needed].name);
  if (!gradient.addend.complete())
    refuse(Rule::kOwnGradient, "updates {} with {}; the gradient must be complete", show(parameter),
           show(gradient));
  if (gradient.clipped != optimizer_.needs_norm())
    refuse(Rule::kOwnGradient, "updates {} with {}, needs it {}", show(parameter), show(gradient),
           gradient.clipped ? "not clipped" : "clipped");
  SpanBox met;
  if (!meet(parameter.box, gradient.box, met))
    refuse(Rule::kOwnGradient, "updates {} with another part of its gradient, {}", show(parameter),
           show(gradient));
}

}  // namespace partita::certify
