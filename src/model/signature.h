#pragma once

#include <string_view>

namespace partita::model {

/// How an op with a row is called: what PyTorch's schema says, known without PyTorch.
/// Example: {"aten.addmm.default", "self mat1 mat2 beta alpha", 1}.
struct Signature {
  static constexpr int kAnyNumber = -1;
  std::string_view target;
  std::string_view arguments;  // names with a space between, in their order
  int results = 1;             // kAnyNumber: one list
};

/// Null for an op without a row.
const Signature* find_signature(std::string_view target);

}  // namespace partita::model
