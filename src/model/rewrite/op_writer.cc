#include "model/rewrite/op_writer.h"

#include "base/error.h"
#include "model/text_arg.h"

namespace partita::model {

OpWriter::Made OpWriter::dense(Shape shape, DType dtype) const {
  Shape strides = build::contiguous_strides(shape);
  return {{std::move(shape), std::move(strides)}, dtype};
}

build::Dims OpWriter::broadcast(const std::vector<Arg>& args) const {
  std::vector<build::Dims> operands;
  for (const Arg& arg : args)
    if (arg.kind == Arg::kTensor) operands.push_back(dims(arg.tensor));
  return build::elementwise(operands);
}

std::vector<TensorId> OpWriter::call_many(const std::string& name, std::string target, std::vector<Arg> args,
                                          const std::vector<Made>& made, Keywords keywords) {
  Op op{.name = stem_ + "." + name,
        .target = std::move(target),
        .args = std::move(args),
        .kwargs = std::move(keywords),
        .backward = backward_};
  for (size_t k = 0; k < made.size(); ++k) {
    op.outputs.push_back(TensorId{static_cast<int32_t>(model_.tensors.size())});
    model_.tensors.push_back({.name = fmt::format("{}:{}", op.name, k),
                              .shape = made[k].dims.shape,
                              .strides = made[k].dims.strides,
                              .dtype = made[k].dtype});
  }
  model_.ops.push_back(std::move(op));
  return model_.ops.back().outputs;
}

TensorId OpWriter::call(const std::string& name, std::string target, std::vector<Arg> args, Made made,
                        Keywords keywords) {
  return call_many(name, std::move(target), std::move(args), {std::move(made)}, std::move(keywords))[0];
}

TensorId OpWriter::arange(const std::string& name, int64_t size) {
  return call(name, "aten.arange.default", {Arg::of(size)}, dense({size}, DType::kInt64),
              {{"device", text_arg(Arg::kDevice, "cpu")}});
}

TensorId OpWriter::view(const std::string& name, TensorId x, const Shape& shape) {
  std::optional<Shape> strides = build::view_strides(dims(x), shape);
  CHECK(strides.has_value());
  return call(name, "aten.view.default", {Arg::of(x), Arg::list(shape)},
              {{shape, *std::move(strides)}, dtype(x)});
}

TensorId OpWriter::permute(const std::string& name, TensorId x, const std::vector<int64_t>& order) {
  build::Dims from = dims(x), to;
  for (int64_t d : order) to.shape.push_back(from.shape[d]), to.strides.push_back(from.strides[d]);
  return call(name, "aten.permute.default", {Arg::of(x), Arg::list(order)}, {std::move(to), dtype(x)});
}

TensorId OpWriter::expand(const std::string& name, TensorId x, const Shape& shape) {
  build::Dims from = dims(x), to{shape, from.strides};
  for (size_t d = 0; d < shape.size(); ++d)
    if (from.shape[d] != shape[d]) to.strides[d] = 0;
  return call(name, "aten.expand.default", {Arg::of(x), Arg::list(shape)}, {std::move(to), dtype(x)});
}

TensorId OpWriter::copy(const std::string& name, TensorId x) {
  return call(name, "aten.clone.default", {Arg::of(x)}, dense(shape(x), dtype(x)),
              {{"memory_format", text_arg(Arg::kMemoryFormat, "contiguous_format")}});
}

TensorId OpWriter::repeat(const std::string& name, TensorId x, int64_t times) {
  Shape made = shape(x), repeats(made.size() + 1, 1);
  repeats[0] = times;
  made.insert(made.begin(), times);
  return call(name, "aten.repeat.default", {Arg::of(x), Arg::list(repeats)},
              dense(std::move(made), dtype(x)));
}

TensorId OpWriter::pad(const std::string& name, TensorId x, int64_t dim, int64_t more, double value) {
  Shape made = shape(x), pads(2 * (made.size() - static_cast<size_t>(dim)), 0);
  made[dim] += more;
  pads.back() = more;
  Arg filling;
  filling.kind = Arg::kFloat;
  filling.number = value;
  return call(name, "aten.constant_pad_nd.default", {Arg::of(x), Arg::list(pads), filling},
              dense(std::move(made), dtype(x)));
}

TensorId OpWriter::head(const std::string& name, TensorId x, int64_t dim, int64_t length) {
  build::Dims made = dims(x);
  made.shape[dim] = length;
  return call(name, "aten.slice.Tensor", {Arg::of(x), Arg::of(dim), Arg::of(int64_t{0}), Arg::of(length)},
              {std::move(made), dtype(x)});
}

TensorId OpWriter::cast(const std::string& name, TensorId x, DType to) {
  return call(name, "aten._to_copy.default", {Arg::of(x)}, {build::like(dims(x)), to},
              {{"dtype", text_arg(Arg::kDType, std::string(dtype_name(to)))}});
}

TensorId OpWriter::elementwise(const std::string& name, std::string target, std::vector<Arg> args) {
  Made made{broadcast(args), dtype(args[0].tensor)};
  return call(name, std::move(target), std::move(args), std::move(made));
}

TensorId OpWriter::compare(const std::string& name, std::string target, std::vector<Arg> args) {
  Made made{broadcast(args), DType::kBool};
  return call(name, std::move(target), std::move(args), std::move(made));
}

TensorId OpWriter::reduce(const std::string& name, std::string target, TensorId x, int64_t dim, bool keep) {
  Shape left = shape(x);
  if (keep)
    left[dim] = 1;
  else
    left.erase(left.begin() + dim);
  Arg kept;
  kept.kind = Arg::kBool;
  kept.integer = keep;
  return call(name, std::move(target), {Arg::of(x), Arg::list({dim}), kept},
              dense(std::move(left), dtype(x)));
}

}  // namespace partita::model
