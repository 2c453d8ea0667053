#pragma once

#include "model/build/calls.h"

// Modules of transformers as PyTorch and Hugging Face compute them. Each enters the module it is named after
// and finds its weights there.
namespace partita::model::build {

/// Declares `name.weight` [out, in] and, with `bias`, `name.bias`.
void declare_linear(Graph& g, const std::string& name, int64_t in, int64_t out, bool bias);
/// Declares weight and bias of a layer norm, or with `bias` false the weight of an RMS norm.
void declare_norm(Graph& g, const std::string& name, int64_t size, bool bias);

/// x weight^T (+ bias where it was declared), over the last dimension.
TensorId linear(Graph& g, std::string_view name, TensorId x);
/// The same with the weight of another module: a tied head.
TensorId linear_with(Graph& g, std::string_view name, TensorId x, TensorId weight, TensorId bias = {});
TensorId norm(Graph& g, std::string_view name, TensorId x, double eps);
TensorId rms_norm(Graph& g, std::string_view name, TensorId x, double eps);
TensorId embed(Graph& g, std::string_view name, TensorId index, int64_t padding = -1);

/// [batch, seq, heads * width] -> [batch, heads, seq, width], a view.
TensorId to_heads(Graph& g, TensorId x, int64_t width);
TensorId from_heads(Graph& g, TensorId x);

/// Products of matrices in the last two of four dimensions. REQUIRES: equal first two dimensions.
TensorId matmul(Graph& g, TensorId a, TensorId b);

/// Attention in pieces, for a bias on the scores that is learned: softmax(query key^T scale + bias) value.
TensorId biased_attention(Graph& g, TensorId query, TensorId key, TensorId value, double scale,
                          TensorId bias);

/// An image cut into squares, each one a row: [batch, patches, hidden]. Enters `patch_embeddings`.
TensorId patches(Graph& g, TensorId image, int64_t side);

/// [batch, n] -> [batch, n + 1] with `value` in front.
TensorId pad_front(Graph& g, TensorId x, int64_t value);

/// Activation by its Hugging Face name: gelu, gelu_new, gelu_pytorch_tanh, relu, silu, swish, tanh.
TensorId activation(Graph& g, std::string_view module, std::string_view name, TensorId x);
std::vector<std::string> activation_names();

/// Mean cross entropy of logits [batch, seq, vocabulary] against the labels one place on.
TensorId next_token_loss(Graph& g, TensorId logits, TensorId labels);
/// The same against the labels in place.
TensorId token_loss(Graph& g, TensorId logits, TensorId labels);

}  // namespace partita::model::build
