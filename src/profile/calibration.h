#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/row.h"
#include "profile/profile.h"

namespace partita {

/// One op as it ran on this machine.
struct OpSample {
  std::string signature;  // signature_of: the op with all its shapes
  std::string target;     // "aten.mm.default"
  int layout = 0;         // bit k: input k is not dense
  Flops flops = 0;
  Bytes moved = 0;  // read and written
  Seconds seconds = 0;
  Bytes workspace = 0;  // hidden bytes of the call
  Bytes retained = 0;   // bytes of its outputs beyond their shapes

  bool operator==(const OpSample&) const = default;
};

/// What `partita calibrate` measured. The versioned file format of docs/formats/calibration.md.
struct Calibration {
  std::string machine;  // what the processor calls itself
  int threads = 1;
  std::vector<OpSample> samples;  // by signature, each once

  bool operator==(const Calibration&) const = default;
};
std::string to_json(const Calibration& calibration);
Calibration parse_calibration(std::string_view text, std::string_view where);

/// Everything about an op that its time and workspace can depend on but values:
/// `aten.mm.default float32[8,4|4,1] float32[4,2|2,1]`.
std::string signature_of(const Model& model, const Op& op);

/// Times of ops from samples. An op that was measured takes what it took. Another one of the same kind takes
/// its roofline times the corrections of the nearest samples (distance in log flops and log bytes, inputs
/// that lie alike first), weighted. One of a kind that was never measured takes the middle of all
/// corrections.
class SampledCosts {
 public:
  /// Keeps a reference to `calibration`; `cluster` gives the roofline.
  SampledCosts(const Calibration& calibration, const Cluster& cluster);

  Seconds seconds(const OpSample& op, DType dtype) const;
  /// Null where exactly this op was not measured.
  const OpSample* find(const std::string& signature) const;

 private:
  struct Corrected {
    const OpSample* sample = nullptr;
    double correction = 1;  // seconds over roofline
  };
  double correction_near(const OpSample& op, const std::vector<Corrected>& known) const;

  Cluster cluster_;
  std::map<std::string_view, const OpSample*> by_signature_;
  std::map<std::string_view, std::vector<Corrected>> by_target_;
  double middle_ = 1;
};

/// The op as a sample without its time.
OpSample sample_of(const Model& model, const Op& op);

/// The dtype whose rate an op runs at: that of its first output.
DType dtype_of(const Model& model, const Op& op);

}  // namespace partita
