#pragma once

#include "model/row.h"

namespace partita {

// Hidden temporary bytes of one call on one thread, as docs/workspace.md has them: measured, exact for
// float32 and float64.

/// Scores, row maxima, row sums and output of one block of queries.
Bytes attention_workspace(const OpView& local);
/// Scores and their gradient for one block of queries, and a sum for each.
Bytes attention_backward_workspace(const OpView& local);
/// Partial sums of the gradients of weight and bias.
Bytes layer_norm_backward_workspace(const OpView& local);
/// Two sums for each sample and channel.
Bytes group_norm_backward_workspace(const OpView& local);
/// The count as a tensor, and converted to the dtype of the mean.
Bytes mean_workspace(const OpView& local);
/// The squared differences before they are summed.
Bytes squared_error_workspace(const OpView& local);
/// The size and stride of each dimension, twice.
Bytes repeat_workspace(const OpView& local);
/// The base as a tensor, and converted.
Bytes number_power_workspace(const OpView& local);
/// Copies of the inputs that are not of the dtype the op computes in, which is that of its first output.
Bytes conversion_workspace(const OpView& local);

}  // namespace partita
