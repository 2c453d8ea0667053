#pragma once

#include "model/row.h"

namespace partita::model {

// Hidden temporary bytes of kernels that resize, as docs/workspace.md has them.

/// For each place of each dimension of the result: which `Taps` places it is made from, and their weights.
template <int64_t Taps>
Bytes taps_workspace(const OpView& local);
/// The same for images of more than 128 places in both directions; smaller ones, and bilinear ones of three
/// channels, are copied so that the channels of one place lie beside each other, before and after.
template <int64_t Taps>
Bytes image_taps_workspace(const OpView& local);
/// The image resized in one direction, and weights of the direction that has more of them. `Taps` at equal
/// size, wider where the image shrinks.
template <int64_t Taps>
Bytes smooth_workspace(const OpView& local);
/// A dense copy of the gradient where it is not, and one of the result where that lies place by place.
Bytes smooth_backward_workspace(const OpView& local);
/// The same, where no gaps between places make the kernel take the gradient as it is.
Bytes image_resize_backward_workspace(const OpView& local);

}  // namespace partita::model
