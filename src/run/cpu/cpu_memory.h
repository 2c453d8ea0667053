#pragma once

#include "run/memory.h"

namespace partita::run {

/// The host's memory: a DevicePointer is an address of this process. It keeps nothing, so one serves all.
class CpuMemory : public Memory {
 public:
  std::string device() const override { return "cpu"; }
  Block allocate(Bytes bytes) override;
  void copy(const TensorView& from, const TensorView& to) override;
  void copy(DevicePointer from, DevicePointer to, Walk walk, DType dtype) override;
  void sum(const std::vector<DevicePointer>& from, DevicePointer to, Walk walk, DType dtype) override;
  void zero(const TensorView& tensor) override;
  void add_squares(const TensorView& of, DevicePointer sum) override;
  double number(DevicePointer at) override;
  void write(const HostView& from, DevicePointer to, Walk walk) override;
  HostTensor read(const TensorView& from) override;
};

/// A value of the host as a tensor of this memory. REQUIRES: `tensor` outlives it.
TensorSpan span_of(HostTensor& tensor);

}  // namespace partita::run
