#pragma once

#include "model/model.h"

namespace partita::model {

/// The same step with every floating tensor and every floating dtype argument of another floating dtype. Ops
/// that make floating tensors from nothing (`full`, `zeros`) and name no dtype get one: their default would
/// be float32. Throws InputError if `dtype` is not floating.
Model retype(Model model, DType dtype);

/// The dtype of the last parameter, which stands for all; empty where there is none.
std::string parameter_dtype(const Model& model);

}  // namespace partita::model
