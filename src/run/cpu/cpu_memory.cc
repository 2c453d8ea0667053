#include "run/cpu/cpu_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "run/cpu/strided.h"

namespace partita::run {
namespace {

// What vector instructions and cache lines like; torch aligns alike.
constexpr size_t kAlignment = 64;

std::byte* bytes(DevicePointer pointer) { return static_cast<std::byte*>(pointer.address); }

// Elements of a tensor that lies dense, row by row; -1: it does not.
int64_t dense_elements(const TensorView& view) {
  int64_t count = 1;
  for (int32_t d = view.dims; d-- > 0; count *= view.shape[d])
    if (view.shape[d] != 1 && view.strides[d] != count) return -1;
  return count;
}

std::vector<Extent> extents_of(const TensorView& from, const TensorView& to) {
  std::vector<Extent> extents;
  for (int32_t d = 0; d < to.dims; ++d) extents.push_back({to.shape[d], to.strides[d], from.strides[d]});
  return extents;
}

}  // namespace

Block CpuMemory::allocate(Bytes size) {
  if (size == 0) return {nullptr, std::free};
  size_t whole = (static_cast<size_t>(size) + kAlignment - 1) / kAlignment * kAlignment;
  void* taken = std::aligned_alloc(kAlignment, whole);
  if (!taken) throw std::bad_alloc();
  return {taken, std::free};
}

void CpuMemory::copy(const TensorView& from, const TensorView& to) {
  Bytes element = dtype_bytes(to.dtype);
  int64_t count = dense_elements(from);
  if (count >= 0 && dense_elements(to) == count) {
    if (count > 0) std::memcpy(to.data.address, from.data.address, count * element);
    return;
  }
  copy_strided(bytes(to.data), bytes(from.data), extents_of(from, to), element);
}

void CpuMemory::copy(DevicePointer from, DevicePointer to, Walk walk, DType dtype) {
  Bytes element = dtype_bytes(dtype);
  copy_strided(bytes(to) + walk.to * element, bytes(from) + walk.from * element, std::move(walk.extents),
               element);
}

void CpuMemory::sum(const std::vector<DevicePointer>& from, DevicePointer to, Walk walk, DType dtype) {
  Bytes element = dtype_bytes(dtype);
  std::vector<const std::byte*> sources;
  for (DevicePointer source : from) sources.push_back(bytes(source) + walk.from * element);
  sum_strided(bytes(to) + walk.to * element, sources, std::move(walk.extents), dtype);
}

void CpuMemory::zero(const TensorView& tensor) {
  zero_strided(bytes(tensor.data), extents_of(tensor, tensor), dtype_bytes(tensor.dtype));
}

void CpuMemory::add_squares(const TensorView& of, DevicePointer sum) {
  *static_cast<double*>(sum.address) += sum_of_squares(bytes(of.data), extents_of(of, of), of.dtype);
}

double CpuMemory::number(DevicePointer at) { return *static_cast<const double*>(at.address); }

void CpuMemory::write(const HostView& from, DevicePointer to, Walk walk) {
  Bytes element = dtype_bytes(from.dtype);
  copy_strided(bytes(to) + walk.to * element, from.data + walk.from * element, std::move(walk.extents),
               element);
}

HostTensor CpuMemory::read(const TensorView& from) {
  HostTensor out({from.shape, from.shape + from.dims}, from.dtype);
  copy(from, view_of(span_of(out)));
  return out;
}

TensorSpan span_of(HostTensor& tensor) {
  return {{tensor.data.data()}, {tensor.shape, row_major(tensor.shape), tensor.dtype}};
}

}  // namespace partita::run
