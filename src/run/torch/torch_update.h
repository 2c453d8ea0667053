#pragma once

#include <ATen/core/TensorBody.h>

#include <memory>
#include <string>
#include <vector>

#include "model/optimizer.h"

namespace partita::run {

/// Whole parameters under the optimizer of torch that has the spec's name, with torch's own clipping.
/// Everything is as torch.optim documents it: groups, master copies as amp scripts keep them, gradients in
/// the dtype of what they update.
class TorchUpdate {
 public:
  struct Parameter {
    std::string name;
    at::Tensor value;  // changes in place
  };
  TorchUpdate(const OptimizerSpec& spec, std::vector<Parameter> parameters);
  ~TorchUpdate();

  /// Clips copies of the gradients, one for each parameter: what `update` takes. "none" leaves them alone.
  std::vector<at::Tensor> clipped(const std::vector<at::Tensor>& gradients) const;
  /// Updates every parameter.
  void update(const std::vector<at::Tensor>& clipped);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita::run
