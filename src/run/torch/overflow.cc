#include "run/torch/overflow.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/seed.h"

namespace partita::run {
namespace {

double largest(const at::Tensor& tensor) {
  return tensor.numel() ? tensor.abs().max().to(at::kDouble).item<double>() : 0;
}

double most_of(at::ScalarType type) {
  if (type == at::kHalf) return std::numeric_limits<c10::Half>::max();
  if (type == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::max();
  return type == at::kFloat ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
}

}  // namespace

// Backward is linear in the gradient of the loss: what is computed from it is multiplied by the scale.
Overflow::Overflow(const Model& model, double loss_scale) : scaled_(model.tensors.size()) {
  scale_.value = loss_scale;
  if (TensorId seed = loss_gradient(model)) scaled_ = computed_from(model, seed);
}

void Overflow::look(const Op& op, const std::vector<at::Tensor>& values) {
  for (TensorId output : op.outputs) {
    if (!output || !scaled_[output.value]) continue;
    const at::Tensor& value = values[output.value];
    if (!value.defined() || !value.is_floating_point()) continue;
    overflowed_ |= !(largest(value) * scale_.value <= most_of(value.scalar_type()));
  }
}

bool Overflow::end_step(const std::vector<at::Tensor>& gradients) {
  double squares = 0;
  for (const at::Tensor& gradient : gradients) {
    double norm = gradient.norm().to(at::kDouble).item<double>() * scale_.value;
    squares += norm * norm;
  }
  bool overflowed = overflowed_ || !std::isfinite(squares);
  scale_ = after_step(scale_, overflowed);
  overflowed_ = false;
  return overflowed;
}

}  // namespace partita::run
