#pragma once

#include <memory>
#include <string>
#include <vector>

#include "run/device_tensor.h"
#include "run/host_tensor.h"

namespace partita::run {

/// Memory of a device that is taken; it is given back where this ends, or by the deleter after release().
using Block = std::unique_ptr<void, void (*)(void*)>;

/// The memory of one kind of device: one of the four seams of the runtime. Tensors in it are opaque, and
/// nobody else looks into them. A call is made for an instruction, never for an element. The threads of all
/// ranks call it at once; what one thread asks for happens in that order, and only `number` and `read` wait
/// for it to be over. `from` and `to` never overlap unless it is said.
class Memory {
 public:
  virtual ~Memory() = default;

  /// As torch writes it: "cpu".
  virtual std::string device() const = 0;

  /// Takes so many bytes, contents undefined. Empty for 0 bytes.
  virtual Block allocate(Bytes bytes) = 0;

  /// Copies a tensor. Where both are dense it allocates nothing. REQUIRES: same shape and dtype.
  virtual void copy(const TensorView& from, const TensorView& to) = 0;
  /// Copies the elements that the walk goes over.
  virtual void copy(DevicePointer from, DevicePointer to, Walk walk, DType dtype) = 0;

  /// to = from[0] + from[1] + ... along the walk, added in that order, half precisions in float32 and rounded
  /// once; the sum of bools is `or`. `to` may be one of `from` where both sides of the walk agree.
  virtual void sum(const std::vector<DevicePointer>& from, DevicePointer to, Walk walk, DType dtype) = 0;

  /// Fills a tensor with zeros.
  virtual void zero(const TensorView& tensor) = 0;

  /// Adds the squares of all elements, in double precision, to the float64 at `sum`. REQUIRES: not complex.
  virtual void add_squares(const TensorView& of, DevicePointer sum) = 0;

  /// The float64 that lies there.
  virtual double number(DevicePointer at) = 0;

  /// Brings values of the host to the device; the walk goes over a dense `from`.
  virtual void write(const HostView& from, DevicePointer to, Walk walk) = 0;
  /// Brings a tensor to the host.
  virtual HostTensor read(const TensorView& from) = 0;

  /// Copies [begin, begin + length of `part`) of `whole` along `cut`, out of it or into it (walk_cut).
  void slice(const TensorSpan& whole, const TensorSpan& part, const Cut& cut, int64_t begin);
  void place(const TensorSpan& part, const TensorSpan& whole, const Cut& cut, int64_t begin);
  /// Fills `part` with a box of a value of the host (walk_box).
  void load(const HostView& whole, const Leaves& leaves, const Box& box, const TensorSpan& part);
};

}  // namespace partita::run
