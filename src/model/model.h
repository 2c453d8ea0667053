#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "model/dtype.h"

namespace partita::model {

using TensorId = Id<struct TensorTag>;
using OpId = Id<struct OpTag>;

using Shape = std::vector<int64_t>;

/// What a tensor is to the training step.
enum class Role : uint8_t { kValue, kParameter, kBuffer, kBatchInput, kConstant };

/// Where a piece sits that was taken out of a packed parameter: from `begin` on along `dim` of `whole`.
struct Part {
  TensorId whole;
  int32_t dim = 0;
  int64_t begin = 0;
  bool operator==(const Part&) const = default;
};

struct Tensor {
  std::string name;
  Shape shape;
  Shape strides;  // of the captured tensor, in elements; a local piece is compact in the same order of
                  // dimensions
  DType dtype = DType::kFloat32;
  Role role = Role::kValue;
  bool trainable = false;     // parameters only
  int64_t low = 0, high = 0;  // batch inputs of whole numbers: values lie in [low, high)
  Part part;                  // parameters made by `unpack` (layout/unpack.h); never in a file

  bool operator==(const Tensor&) const = default;
};

/// One argument of an op: a tensor, a plain value, or a list of arguments.
struct Arg {
  enum Kind : uint8_t {
    kNone,
    kTensor,
    kInt,
    kFloat,
    kBool,
    kText,
    kDType,
    kDevice,
    kLayout,
    kMemoryFormat,
    kList
  };
  Kind kind = kNone;
  TensorId tensor;  // kTensor. In a Model: an id of it; in a Program's instruction: an index into its inputs
  int64_t integer = 0;     // kInt, kBool
  double number = 0;       // kFloat
  std::string text;        // kText, kDType, kDevice, kLayout, kMemoryFormat
  std::vector<Arg> items;  // kList

  static Arg none() { return {}; }
  static Arg of(TensorId id);
  static Arg of(int64_t value);
  static Arg list(const std::vector<int64_t>& values);

  bool operator==(const Arg&) const = default;
};

struct Op {
  std::string name;    // "transformer.h.0.attn/addmm", ".../addmm.grad.1", "loss/..."
  std::string target;  // "aten.mm.default"
  std::vector<Arg> args;
  std::vector<std::pair<std::string, Arg>> kwargs;
  std::vector<TensorId> outputs;  // an output that PyTorch leaves out (None) has no id
  bool backward = false;          // does not lead to the loss: part of the gradient computation
  std::string axes;               // letters given for an op without a row (axes.h); else empty
  bool inferred = false;          // `axes` were found by experiment, nobody vouches for them (inferred.h)
  bool view = false;              // without a row: PyTorch's schema says that outputs are views of input 0

  bool operator==(const Op&) const = default;
};

/// One whole training step as an ATen graph: forward, loss, backward, in execution order. It ends at
/// gradients and new buffer values; optimizer, clipping and loss scale are appended by `lower` from the Plan.
struct Model {
  std::string name;
  std::string torch;  // the version of PyTorch that captured it; empty for a model built otherwise
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  TensorId loss;
  TensorId seed;  // the gradient of the loss, as capture marked it; none: see loss_gradient (seed.h)
  std::vector<std::pair<TensorId, TensorId>> gradients;  // (trainable parameter, its gradient)
  std::vector<std::pair<TensorId, TensorId>> buffers;    // (mutated buffer, its new value)

  const Tensor& operator[](TensorId id) const { return tensors[id.value]; }
  const Op& operator[](OpId id) const { return ops[id.value]; }
  bool operator==(const Model&) const = default;
};

int64_t numel(const Shape& shape);
Bytes bytes_of(const Tensor& tensor);

/// The name a user knows a parameter by: of the whole, where `unpack` made a part of it.
const std::string& whole_name(const Model& model, TensorId tensor);

/// The tensors an op reads, in order of appearance in args then kwargs (lists flattened, repeats kept).
std::vector<TensorId> inputs_of(const Op& op);

/// Argument by position, or by name where it was given as a keyword; a none where it is absent.
/// Example: `argument(softmax, 1, "dim")`.
const Arg& argument(const Op& op, size_t position, std::string_view name);

/// "gpt2#1f3a..." : the name and a hash of everything that matters to a plan. Equal for all floating dtypes
/// of one model: `fingerprint(retype(m, d)) == fingerprint(m)`.
std::string fingerprint(const Model& model);

/// Everything wrong with a model, one sentence each; empty when it is sound: ids are in range and names
/// unique, every tensor is made once and before it is read, inputs of the step are made by no op, the loss is
/// a floating scalar, and exactly the trainable parameters that the loss uses have a gradient, of their own
/// shape.
std::vector<std::string> check(const Model& model);

/// The versioned file format of docs/formats/model.md. `parse_model` is strict and ends with `check`.
std::string to_json(const Model& model);
Model parse_model(std::string_view text, std::string_view where);

/// One line per op, for people:  `%12 f32[8,64,128] = aten.mm.default(%3, %7)  # transformer.h.0.mlp/mm`.
std::string to_text(const Model& model);

}  // namespace partita::model
