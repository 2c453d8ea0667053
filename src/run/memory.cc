#include "run/memory.h"

#include "base/error.h"
#include "run/cut.h"

namespace partita::run {

void Memory::slice(const TensorSpan& whole, const TensorSpan& part, const Cut& cut, int64_t begin) {
  copy(whole.data, part.data, walk_cut(whole.type, part.type, cut, begin), part.type.dtype);
}

void Memory::place(const TensorSpan& part, const TensorSpan& whole, const Cut& cut, int64_t begin) {
  copy(part.data, whole.data, walk_cut(whole.type, part.type, cut, begin).reversed(), part.type.dtype);
}

void Memory::load(const HostView& whole, const Leaves& leaves, const Box& box, const TensorSpan& part) {
  CHECK(whole.dtype == part.type.dtype);
  write(whole, part.data, walk_box(whole.shape, leaves, box, part.type));
}

}  // namespace partita::run
