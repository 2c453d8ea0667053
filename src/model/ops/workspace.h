#pragma once

#include "model/row.h"

namespace partita {

// Hidden temporary bytes of one call on one thread, as docs/workspace.md has them: measured, exact for
// float32 and float64.

/// Scores, row maxima, row sums and output of one block of queries.
Bytes attention_workspace(const OpView& local);
/// Scores and their gradient for one block of queries, and a sum for each.
Bytes attention_backward_workspace(const OpView& local);
/// A dense copy of the input, where it is not.
Bytes layer_norm_workspace(const OpView& local);
/// Partial sums of the gradients of weight and bias; dense copies of gradient and input where they are not.
Bytes layer_norm_backward_workspace(const OpView& local);
/// Two sums for each channel; three where there is one place a channel.
Bytes batch_norm_workspace(const OpView& local);
/// The normalized input.
Bytes batch_norm_backward_workspace(const OpView& local);
/// A dense copy of the indices, where they are not.
Bytes embedding_workspace(const OpView& local);
/// Dense copies of gradient and indices, where they are not.
Bytes embedding_backward_workspace(const OpView& local);
/// Which scores are minus infinity, which rows have nothing else, and a zero.
Bytes safe_softmax_workspace(const OpView& local);
/// Two sums for each sample and channel.
Bytes group_norm_backward_workspace(const OpView& local);
/// The count as a tensor, and converted to the dtype of the mean.
Bytes mean_workspace(const OpView& local);
/// The squared differences before they are summed, and what a mean needs.
Bytes squared_error_workspace(const OpView& local);
/// The kernel sums into a buffer of the size of the input, which the number then keeps.
Bytes squared_error_retained(const OpView& local);
/// The size and stride of each dimension, twice.
Bytes repeat_workspace(const OpView& local);
/// What has been rolled along all dimensions but the last.
Bytes roll_workspace(const OpView& local);
/// The base as a tensor, and converted.
Bytes number_power_workspace(const OpView& local);
/// Copies of the inputs that are not of the dtype the op computes in, which is that of its first output.
Bytes conversion_workspace(const OpView& local);

}  // namespace partita
