#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace partita::model {

/// Where backward starts: the tensor of ones that is the gradient of the loss; no id where nothing is
/// trained. Of several that could be it, where none is marked, the one that most gradients come from.
TensorId loss_gradient(const Model& model);

/// Does the op make a one in the dtype of the loss, outside of forward?
bool may_make_seed(const Model& model, const Op& op);

/// By tensor: is it computed from the values of this one?
std::vector<bool> computed_from(const Model& model, TensorId tensor);

/// Why gradients times a scale cannot be had by scaling the gradient of the loss; empty where they can: every
/// gradient is computed from it, by ops that are linear in it, or is zero, and no new value of a buffer is.
std::string unscalable(const Model& model);

}  // namespace partita::model
