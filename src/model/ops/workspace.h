#pragma once

#include "model/row.h"

namespace partita::model {

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
/// Two sums for each channel; three where the channels of a place lie together; none where there are gaps.
Bytes batch_norm_workspace(const OpView& local);
/// The normalized input.
Bytes batch_norm_backward_workspace(const OpView& local);
/// A dense copy of the indices, where they are not.
Bytes embedding_workspace(const OpView& local);
/// Dense copies of gradient and indices, where they are not.
Bytes embedding_backward_workspace(const OpView& local);
/// Where each bag begins, before it is known how large bags are; for a mean, what it divides by.
Bytes embedding_bag_workspace(const OpView& local);
/// The bag of each index: one element more than it has. None where the kernel of float32 sums bag by bag.
Bytes embedding_bag_retained(const OpView& local);
/// The indices in order, and where they were; at a maximum, the places of the gradient of each bag.
Bytes embedding_bag_backward_workspace(const OpView& local);
/// Which scores are minus infinity, which rows have nothing else, and a zero.
Bytes safe_softmax_workspace(const OpView& local);
/// Two sums for each sample and channel.
Bytes group_norm_backward_workspace(const OpView& local);
/// The count as a tensor, and converted to the dtype of the mean.
Bytes mean_workspace(const OpView& local);
/// The squared differences before they are summed, and what a mean needs; twice what had to be converted.
Bytes squared_error_workspace(const OpView& local);
/// The kernel sums into a buffer of the size of the input, which the number then keeps.
Bytes squared_error_retained(const OpView& local);
/// The same, and converted operands once.
Bytes huber_workspace(const OpView& local);
/// Operands converted to the dtype that all of them together have, and a result of it where it is another.
Bytes promoted_workspace(const OpView& local);
/// oneDNN wants gradient and result, in float32 and not approximated, to lie as a dense input does.
Bytes gelu_backward_workspace(const OpView& local);
/// The size and stride of each dimension, twice.
Bytes repeat_workspace(const OpView& local);
/// What has been rolled along all dimensions but the last.
Bytes roll_workspace(const OpView& local);
/// The base as a tensor, and converted.
Bytes number_power_workspace(const OpView& local);
/// Copies of the inputs that are not of the dtype the op computes in, which is that of its first output.
Bytes conversion_workspace(const OpView& local);

/// A dense copy of the first operand, where it is not.
Bytes first_copy_workspace(const OpView& local);
/// Dense copies of the first two operands, where they are not.
Bytes two_copies_workspace(const OpView& local);
/// A dense copy of the first operand, where it is also no image that lies place by place: kernels for images
/// take that as it is.
Bytes image_copy_workspace(const OpView& local);
/// The magnitudes, and infinity as a tensor.
Bytes infinity_workspace(const OpView& local);
/// A dense copy of what slices are taken of, where it is not and they are those of its second dimension.
Bytes index_select_workspace(const OpView& local);
/// The number of bits as a tensor.
Bytes shift_workspace(const OpView& local);
/// For the gradient of an op on images, (grad, x, ...): where x lies place by place but the gradient does
/// not, the result and all operands after x are copied too.
Bytes image_backward_workspace(const OpView& local);
/// A copy of the input that is put in order, line by line; none where lines lie in memory as they are.
Bytes median_workspace(const OpView& local);
/// A copy of the input and of the place of each element, which are put in order.
Bytes kth_workspace(const OpView& local);
/// The places of the elements of one line.
Bytes sort_workspace(const OpView& local);
/// The powers, and the largest of each line.
Bytes log_sum_workspace(const OpView& local);
/// How many writes meet at each place: a one for each, the counts, which are none, and a one for those.
Bytes scatter_mean_workspace(const OpView& local);
/// The sum beside the losses of the pairs, in whose storage it is put in the end.
Bytes cross_entropy_workspace(const OpView& local);
Bytes soft_margin_workspace(const OpView& local);
/// The number of pairs a mean divides by.
Bytes cross_entropy_backward_workspace(const OpView& local);
/// Powers and their products.
Bytes soft_margin_backward_workspace(const OpView& local);

}  // namespace partita::model
