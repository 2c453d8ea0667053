#pragma once

#include "model/build/strides.h"
#include "model/model.h"

namespace partita::model {

/// Writes ops that stand in the place of one op into a Model, with the sizes and strides that PyTorch's
/// kernels give their results. New ops are called `<stem>.<name>`, their results `<stem>.<name>:0`.
class OpWriter {
 public:
  using Keywords = std::vector<std::pair<std::string, Arg>>;
  struct Made {
    build::Dims dims;
    DType dtype;
  };

  OpWriter(Model& model, std::string stem, bool backward)
      : model_(model), stem_(std::move(stem)), backward_(backward) {}

  TensorId call(const std::string& name, std::string target, std::vector<Arg> args, Made made,
                Keywords keywords = {});
  std::vector<TensorId> call_many(const std::string& name, std::string target, std::vector<Arg> args,
                                  const std::vector<Made>& made, Keywords keywords = {});

  TensorId arange(const std::string& name, int64_t size);
  /// REQUIRES: a view can show it so.
  TensorId view(const std::string& name, TensorId x, const Shape& shape);
  TensorId permute(const std::string& name, TensorId x, const std::vector<int64_t>& order);
  TensorId expand(const std::string& name, TensorId x, const Shape& shape);
  /// A dense copy.
  TensorId copy(const std::string& name, TensorId x);
  /// `times` of it, one after another along a new first dimension.
  TensorId repeat(const std::string& name, TensorId x, int64_t times);
  /// `more` further elements of this value at the end of dimension `dim`.
  TensorId pad(const std::string& name, TensorId x, int64_t dim, int64_t more, double value);
  /// The first `length` along dimension `dim`.
  TensorId head(const std::string& name, TensorId x, int64_t dim, int64_t length);
  TensorId cast(const std::string& name, TensorId x, DType dtype);
  /// aten.exp, aten.mul.Tensor and their kin; of the dtype of the first tensor.
  TensorId elementwise(const std::string& name, std::string target, std::vector<Arg> args);
  /// As above; the result is true or false.
  TensorId compare(const std::string& name, std::string target, std::vector<Arg> args);
  /// aten.sum.dim_IntList or aten.amax over one dimension.
  TensorId reduce(const std::string& name, std::string target, TensorId x, int64_t dim, bool keep);

  Shape shape(TensorId id) const { return model_[id].shape; }
  build::Dims dims(TensorId id) const { return {model_[id].shape, model_[id].strides}; }
  DType dtype(TensorId id) const { return model_[id].dtype; }

 private:
  Made dense(Shape shape, DType dtype) const;
  build::Dims broadcast(const std::vector<Arg>& args) const;

  Model& model_;
  std::string stem_;
  bool backward_;
};

}  // namespace partita::model
