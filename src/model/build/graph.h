#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/build/strides.h"
#include "model/model.h"

namespace partita::model::build {

/// An argument of a call: a tensor, a number, or any Arg.
struct Operand {
  Operand(TensorId id) : arg(Arg::of(id)) {}
  Operand(int value) : arg(Arg::of(int64_t{value})) {}
  Operand(int64_t value) : arg(Arg::of(value)) {}
  Operand(double value) {
    arg.kind = Arg::kFloat;
    arg.number = value;
  }
  Operand(Arg given) : arg(std::move(given)) {}
  Arg arg;
};
Arg flag(bool value);
Arg flags(const std::vector<bool>& values);
Arg text(std::string_view value);
Arg dtype_argument(DType dtype);
Arg tensors(const std::vector<TensorId>& ids);
/// "device:cpu", "memory_format:contiguous_format" and their like.
Arg setting(Arg::Kind kind, std::string_view value);

/// What a call makes: sizes, strides and dtype of one output.
struct Made {
  Dims dims;
  DType dtype;
};
using Keywords = std::vector<std::pair<std::string, Arg>>;

/// Writes a Model op by op. Ops are named by the module in scope (`h.0.attn/addmm.1`) or, between
/// `begin_gradient` and the next, by the op whose gradient they compute (`h.0.attn/addmm.1.grad.0`, marked
/// backward).
class Graph {
 public:
  explicit Graph(std::string name);

  TensorId parameter(std::string name, Shape shape);
  TensorId buffer(std::string name, Shape shape, DType dtype);
  /// A batch input; whole numbers lie in [0, limit).
  TensorId batch(std::string name, Shape shape, DType dtype, int64_t limit = 0);

  /// A declared input by its full name, or by the module in scope and the rest of its name: `weight("bias")`.
  TensorId named(std::string_view name) const;
  TensorId weight(std::string_view rest) const;
  bool has_weight(std::string_view rest) const;

  /// Enters a module until the scope ends: `auto scope = g.in("attn");`.
  class Scope {
   public:
    Scope(Graph& graph, size_t length) : graph_(&graph), length_(length) {}
    Scope(const Scope&) = delete;
    ~Scope() { graph_->path_.resize(length_); }

   private:
    Graph* graph_;
    size_t length_;
  };
  [[nodiscard]] Scope in(std::string_view module);
  [[nodiscard]] Scope in(std::string_view list, int index);

  /// What is computed from this tensor counts as constant: no gradient flows back through it.
  void stop(TensorId id) { stopped_.push_back(id); }
  const std::vector<TensorId>& stopped() const { return stopped_; }

  void begin_gradient(const std::string& forward);

  TensorId call(std::string_view target, std::vector<Arg> args, Made made, Keywords keywords = {});
  /// One id per output; an output that is not made has none.
  std::vector<TensorId> call_many(std::string_view target, std::vector<Arg> args,
                                  const std::vector<std::optional<Made>>& made, Keywords keywords = {});

  const Tensor& operator[](TensorId id) const { return model_[id]; }
  Dims dims(TensorId id) const { return {model_[id].shape, model_[id].strides}; }
  /// A copy: the tensor itself moves when the next op adds one.
  Shape shape(TensorId id) const { return model_[id].shape; }
  int64_t size(TensorId id, int64_t dim) const;
  const Model& model() const { return model_; }

  /// The finished model. REQUIRES: nothing is called afterwards.
  Model finish(TensorId loss, std::vector<std::pair<TensorId, TensorId>> gradients);

 private:
  TensorId add(Tensor tensor);
  TensorId add_input(std::string name, Shape shape, DType dtype, Role role);
  std::string name_of(std::string_view target);

  Model model_;
  std::string path_;
  std::unordered_map<std::string, TensorId> inputs_;  // looked up only
  std::unordered_map<std::string, int> repeats_;      // looked up only
  std::vector<TensorId> stopped_;
  std::string differentiated_;
  int gradient_ops_ = 0;
};

}  // namespace partita::model::build
