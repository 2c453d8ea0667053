#pragma once

#include <ATen/core/TensorBody.h>

#include <map>
#include <string>
#include <vector>

#include "run/host_tensor.h"

// Tensors cross as pointers to dense memory of the CPU.
namespace partita::python {

using TensorDict = std::map<std::string, at::Tensor>;

/// Tensors of Python, kept alive while their views are used. InputError where one is not on the CPU.
/// `what`: the word for them in it.
class Given {
 public:
  Given(const TensorDict& tensors, const char* what);
  const run::HostViews& views() const { return views_; }

 private:
  std::vector<at::Tensor> kept_;
  run::HostViews views_;
};

/// Hands the memory over without a copy.
TensorDict to_tensors(run::HostTensors values);

}  // namespace partita::python
