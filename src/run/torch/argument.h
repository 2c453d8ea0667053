#pragma once

#include <ATen/core/function_schema.h>

#include <optional>
#include <string>

#include "model/model.h"

namespace partita::run {

/// An argument without tensors as the value the dispatcher takes at this place of a schema. A number where a
/// tensor is expected becomes a 0-dimensional wrapped number, of dtype `number` or, without one, as Python's
/// argument parser makes it. Throws InputError that begins with `where`.
c10::IValue constant_argument(const Arg& arg, const c10::Argument& formal, std::optional<DType> number,
                              const std::string& where);

/// Is the place of type Tensor?[] (indices), rather than Tensor[]?
bool takes_optional_tensors(const c10::Argument& formal);

}  // namespace partita::run
