#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/optimizer.h"
#include "profile/storage.h"

namespace partita::profile {

/// What bytes of a step are held for.
enum class Purpose : uint8_t {
  kParameters,  // parameters, buffers and constants
  kGradients,
  kOptimizer,  // states and master copies
  kInputs,     // the batch
  kSaved,      // activations that forward makes and backward uses
  kTemporary,  // everything else that ops make
  kWorkspace,  // what a kernel takes for itself during a call
};
inline constexpr int kPurposes = 7;
std::string_view name_of(Purpose purpose);
using ByPurpose = std::array<Bytes, kPurposes>;

/// What is kept beside the graph, and in which dtype; none: that of the parameter.
struct Upkeep {
  OptimizerSpec optimizer{.name = "none"};
  std::optional<DType> grad;    // gradients are added into buffers of this dtype, there from the start
  std::optional<DType> master;  // a second copy of every trainable parameter
  std::optional<DType> state;   // of the optimizer's states
};

/// Bytes held from the first op to the last for one element of a trainable parameter of this dtype.
/// Example: bfloat16 with grad, master and state in float32 under adamw: 2 + 4 + 4 + 8 = 18.
struct BytesPerParameter {
  Bytes parameter = 0, gradient = 0, master = 0, states = 0;
  Bytes total() const { return parameter + gradient + master + states; }
};
BytesPerParameter bytes_per_parameter(DType dtype, const Upkeep& upkeep);

/// One storage that is alive at the peak.
struct AlivePart {
  int32_t storage =
      -1;  // index into Storages::all; -1: not of the graph (states, workspace, gradient buffers)
  Purpose purpose = Purpose::kTemporary;
  Bytes bytes = 0;
  TensorId owner;  // the parameter, for what belongs to one; else the tensor that was made first
};

/// What one device holds over a step.
struct StepMemory {
  Bytes peak = 0;
  int32_t peak_op = -1;  // index of the op; -1: before the first. ops.size(): the optimizer's update
  ByPurpose at_peak{};
  std::vector<AlivePart> alive;  // at the peak, in order of birth
  std::vector<Bytes> during;     // by op: the most while it runs
  Bytes saved = 0;               // for backward, when forward ends
};

/// Exact for a runtime that makes a storage with its op and frees it after its last use, as ours does on one
/// device. `storages` are those of `model`, `workspace` the hidden bytes of each op's call.
StepMemory memory_of_step(const Model& model, const Storages& storages, const std::vector<Bytes>& workspace,
                          const Upkeep& upkeep);

}  // namespace partita::profile
