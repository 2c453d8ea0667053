#include "program/gradient_rules.h"

#include <fmt/format.h>

#include "program/coverage.h"
#include "program/span.h"
#include "program/words.h"

namespace partita {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Refused(fmt::format(text, std::forward<Args>(args)...));
}

bool is_real(DType dtype) { return is_floating(dtype) && !is_complex(dtype); }

}  // namespace

Meaning cast_to(const Rules& rules, const Meaning& meaning, DType from, DType to) {
  std::string shown = to_text(meaning, rules.model, rules.atoms);
  if (meaning.addend.zero || !meaning.squares.empty() || !is_real(from) || !is_real(to))
    refuse("casts {}, which is no floating tensor", shown);
  DType own = rules.model[meaning.tensor].dtype;
  if (dtype_bytes(to) < dtype_bytes(from) && !meaning.addend.complete())
    refuse("casts {} to {} before it is complete", shown, dtype_name(to));
  if (to != own && dtype_bytes(to) <= dtype_bytes(own))
    refuse("casts {} to {}, which cannot hold it", shown, dtype_name(to));
  Meaning out = meaning;
  out.as = to == own ? std::nullopt : std::optional(to);
  return out;
}

GradientRules::GradientRules(const Rules& rules, const OptimizerSpec& optimizer)
    : rules_(rules), optimizer_(optimizer), seed_(loss_gradient(rules.model)) {
  for (const auto& [parameter, gradient] : rules.model.gradients) ++parameters_of_[gradient];
}

Meaning GradientRules::scaled(const Meaning& meaning) const {
  if (optimizer_.precision.loss_scale == 0) refuse("scales, but the program has no loss scale");
  if (meaning.tensor != seed_ || meaning.addend.zero)
    refuse("scales {}, which is not the gradient of the loss", show(meaning));
  if (meaning.scaled) refuse("scales the gradient of the loss twice");
  Meaning out = meaning;
  out.scaled = true;
  return out;
}

void GradientRules::check_scaled(const std::vector<Operand>& operands) const {
  bool needed = optimizer_.precision.loss_scale > 0;
  for (const Operand& operand : operands) {
    const Meaning& meaning = *operand.meaning;
    if (meaning.tensor == seed_ && !meaning.addend.zero && meaning.scaled != needed)
      refuse("reads {}, needs it {} the loss scale", show(meaning), needed ? "times" : "without");
  }
}

void GradientRules::check_gradient(const char* doing, const Meaning& meaning) const {
  if (meaning.addend.zero || !parameters_of_.contains(meaning.tensor) || !meaning.addend.complete())
    refuse("{} {}, needs a complete gradient", doing, show(meaning));
  if (meaning.clipped) refuse("{} {}, which is clipped already", doing, show(meaning));
}

Meaning GradientRules::with_squares(const Meaning& sum, const Meaning& gradient) const {
  if (!sum.addend.zero && sum.squares.empty()) refuse("adds squares to {}", show(sum));
  check_gradient("squares", gradient);
  Meaning out{.squares = sum.squares};
  out.squares.emplace_back(gradient.tensor, gradient.box);
  return out;
}

void GradientRules::check_norm(const std::shared_ptr<const Meaning>& norm) {
  if (norm == norm_) return;
  if (norm->squares.empty()) refuse("takes {} for the norm of the gradients", show(*norm));
  std::map<TensorId, std::vector<Box>> parts;
  for (const auto& [tensor, part] : norm->squares)
    for (Box& box : boxes_of(part)) parts[tensor].push_back(std::move(box));
  for (const auto& [gradient, count] : parameters_of_) {
    int64_t counted = 0, all = count * numel(rules_.model[gradient].shape);
    for (const Box& box : parts[gradient]) counted += numel(shape_of(box));
    if (counted != all || !uncovered(whole_box(rules_.atoms, gradient), parts[gradient]).empty())
      refuse("uses the norm before it holds {} once: {} of its {} elements are counted",
             rules_.model[gradient].name, counted, all);
  }
  norm_ = norm;
}

Meaning GradientRules::clipped(const Meaning& gradient, const std::shared_ptr<const Meaning>& norm) {
  check_gradient("clips", gradient);
  check_norm(norm);
  Meaning out = gradient;
  out.clipped = true;
  return out;
}

}  // namespace partita
