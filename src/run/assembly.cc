#include "run/assembly.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace partita::run {
namespace {

TensorType dense_type(const Shape& shape, DType dtype) { return {shape, row_major(shape), dtype}; }

HostTensor cut_out(const HostTensor& whole, const Leaves& leaves, const Box& box) {
  HostTensor part(shape_of(box), whole.dtype);
  slice_box(whole, leaves, box, part.data.data(), dense_type(part.shape, part.dtype));
  return part;
}

double relative(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  double error = std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-30});
  return std::isnan(error) ? INFINITY : error;
}

}  // namespace

Assembly::Assembly(const Shape& shape, DType dtype, Leaves leaves)
    : whole_(shape, dtype), given_(shape, DType::kBool), leaves_(std::move(leaves)) {}

void Assembly::add(const Box& box, const HostView& part) {
  TensorType type = dense_type(part.shape, part.dtype);
  HostTensor known = cut_out(given_, leaves_, box);
  auto set = [](auto flag) { return static_cast<bool>(flag); };
  if (std::any_of(known.data.begin(), known.data.end(), set)) {
    HostTensor before = cut_out(whole_, leaves_, box);
    place_box(whole_, leaves_, box, part.data, type);
    std::vector<double> old_values = to_doubles(before),
                        new_values = to_doubles(cut_out(whole_, leaves_, box));
    for (size_t i = 0; i < old_values.size(); ++i)
      if (set(known.data[i])) disagreement_ = std::max(disagreement_, relative(old_values[i], new_values[i]));
  } else {
    place_box(whole_, leaves_, box, part.data, type);
  }
  if (!known.data.empty()) std::memset(known.data.data(), 1, known.data.size());
  place_box(given_, leaves_, box, known.data.data(), dense_type(known.shape, DType::kBool));
}

int64_t Assembly::missing() const {
  auto unset = [](auto flag) { return !static_cast<bool>(flag); };
  return std::count_if(given_.data.begin(), given_.data.end(), unset);
}

}  // namespace partita::run
