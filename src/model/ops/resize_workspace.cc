#include "model/ops/resize_workspace.h"

#include <algorithm>
#include <cmath>

#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr Bytes kIndex = 8;
constexpr int64_t kSmall = 128;  // places in both directions

Bytes element(const OpView& local) { return dtype_bytes(local.dtype); }

// The result lies place by place where x can be read in no other way. Both are one where there is one channel
// or one place.
Bytes copies(const OpView& local) {
  const Sizes &x = local.in[0], &y = local.out[0];
  bool turned = local.turned(0) && !local.dense(0);
  bool either = y[1] == 1 || (y[2] == 1 && y[3] == 1);
  return (local.by_place(0) ? 0 : numel(x) * element(local)) +
         (turned || either ? 0 : numel(y) * element(local));
}

// _upsample_bilinear2d_aa(x, output_size, align_corners, scales_h, scales_w): how far apart neighbours are.
double step_of(const OpView& local, int64_t dim) {
  double from = static_cast<double>(local.in[0][dim]), to = static_cast<double>(local.out[0][dim]);
  if (bool_argument(*local.op, 2, "align_corners", false)) return to > 1 ? (from - 1) / (to - 1) : 0;
  double scale = number_argument(*local.op, dim == 2 ? 3 : 4, dim == 2 ? "scales_h" : "scales_w", 0);
  return scale > 0 ? 1 / scale : from / std::max(to, 1.0);
}

// First place, number of places, stride and first weight of each, then the weights.
Bytes weights(const OpView& local, int64_t dim, int64_t taps) {
  constexpr Bytes kNumbers = 4 * kIndex;
  double reach = static_cast<double>(taps) / 2 * std::max(step_of(local, dim), 1.0);
  int64_t wide = static_cast<int64_t>(std::ceil(std::min(reach, 1e9))) * 2 + 1;
  return local.out[0][dim] * (kNumbers + wide * element(local));
}

}  // namespace

template <int64_t Taps>
Bytes taps_workspace(const OpView& local) {
  int64_t places = 0;
  for (int64_t d = 2; d < local.out_rank(0); ++d) places += local.out[0][d];
  return Taps * (kIndex + element(local)) * places;
}
template Bytes taps_workspace<1>(const OpView&);
template Bytes taps_workspace<2>(const OpView&);
template Bytes taps_workspace<4>(const OpView&);

template <int64_t Taps>
Bytes image_taps_workspace(const OpView& local) {
  const Sizes &x = local.in[0], &y = local.out[0];
  bool small = y[2] + y[3] <= kSmall;
  bool wide = local.by_place(0) && x[1] > 3;
  bool colours = Taps == 2 && x[1] == 3;  // on one thread
  return small || wide || colours ? copies(local) : taps_workspace<Taps>(local);
}
template Bytes image_taps_workspace<1>(const OpView&);
template Bytes image_taps_workspace<2>(const OpView&);

template <int64_t Taps>
Bytes smooth_workspace(const OpView& local) {
  const Sizes &x = local.in[0], &y = local.out[0];
  Bytes most = 0;
  for (int64_t dim : {2, 3})
    if (x[dim] != y[dim]) most = std::max(most, weights(local, dim, Taps));
  bool both = x[2] != y[2] && x[3] != y[3];
  return most + (both ? y[0] * y[1] * x[2] * y[3] * element(local) : 0);
}
template Bytes smooth_workspace<2>(const OpView&);
template Bytes smooth_workspace<4>(const OpView&);

Bytes image_resize_backward_workspace(const OpView& local) {
  return local.by_place(0) ? 0 : smooth_backward_workspace(local);
}

Bytes smooth_backward_workspace(const OpView& local) {
  bool turned = local.turned(0) && !local.dense(0);
  return first_copy_workspace(local) + (turned ? numel(local.out[0]) * element(local) : 0);
}

}  // namespace partita::model
