#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace partita::estimate {

/// A stretch of the model that a pipeline does not cut: a repeated module, or what stands before, between and
/// after them.
struct Unit {
  std::string module;  // "transformer.h.3"; "" for what stands between
  bool operator==(const Unit&) const = default;
};

/// Every op belongs to a unit: gradients to that of their forward op, helpers to that of their first reader.
struct Units {
  std::vector<Unit> all;   // in the order in which forward goes through them
  std::vector<int> of_op;  // index into `all`
  bool in_line = true;     // false: forward comes back to a module that it left; stages cannot be cut there
};

/// REQUIRES: check(model) is empty. Example: GPT-2 of two layers has the units "", "transformer.h.0",
/// "transformer.h.1", "".
Units find_units(const Model& model);

/// The module that an op's gradient or forward belongs to by its name: "h.3" of "h.3.attn/mm.grad.1".
std::string_view path_of(std::string_view op_name);

}  // namespace partita::estimate
