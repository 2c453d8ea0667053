#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/row.h"

namespace partita::cost {

/// One op as it ran on this machine; or an instruction that is no op of the model, as "partita.concat".
struct OpSample {
  std::string signature;  // signature_of: the op with all its shapes
  std::string target;     // "aten.mm.default"
  int layout = 0;         // bit k: input k is not dense
  DType dtype = DType::kFloat32;
  Flops flops = 0;
  Bytes moved = 0;  // read and written
  Seconds seconds = 0;
  Bytes workspace = 0;  // hidden bytes of the call
  Bytes retained = 0;   // bytes of its outputs beyond their shapes

  bool operator==(const OpSample&) const = default;
};

/// One message or collective between ranks that are threads of this machine.
struct TransferSample {
  std::string kind;  // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"
  int ranks = 2;
  Bytes bytes = 0;  // of the whole tensor, as profile.h counts
  Seconds seconds = 0;

  bool operator==(const TransferSample&) const = default;
};

/// What `partita calibrate` measured. The versioned file format of docs/formats/calibration.md.
struct Calibration {
  std::string machine;  // what the processor calls itself
  int threads = 1;
  int cores = 0;                          // that ranks share; 0: not known, each has its own
  double expected_error = 0;              // share of a step it did not learn from; 0: not known
  std::vector<OpSample> samples;          // by signature, each once
  std::vector<TransferSample> transfers;  // by kind, ranks and bytes

  bool operator==(const Calibration&) const = default;
};
std::string to_json(const Calibration& calibration);
Calibration parse_calibration(std::string_view text, std::string_view where);

/// A tensor as a signature shows it.
struct TensorLook {
  const Shape& shape;
  const Shape& strides;
  DType dtype;
};
/// Everything about a call that its time and workspace can depend on but values; `look` shows its tensors:
/// `aten.mm.default float32[8,4|4,1] float32[4,2|2,1]`.
std::string signature_of(std::string_view target, const std::vector<Arg>& args,
                         const std::vector<std::pair<std::string, Arg>>& kwargs,
                         const std::function<TensorLook(TensorId)>& look);
std::string signature_of(const Model& model, const Op& op);

/// Bytes that an op of the model reads and writes; none for a view.
Bytes bytes_moved(const Model& model, const Op& op);

/// A call as a sample without its time and without its signature.
OpSample sample_of(const OpView& view, Bytes moved);
/// The op with its signature.
OpSample sample_of(const Model& model, const Op& op);

}  // namespace partita::cost
