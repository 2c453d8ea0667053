#pragma once

#include "model/model.h"

namespace partita::model {

/// loss = sum(table[ids] @ weight), its gradient, a counter and a parameter the loss does not use: every role
/// once.
inline Model small_model() {
  auto value = [](const char* name, Shape shape, Shape strides, DType dtype = DType::kFloat32) {
    return Tensor{.name = name, .shape = std::move(shape), .strides = std::move(strides), .dtype = dtype};
  };
  auto with = [](Tensor tensor, Role role, bool trainable = false) {
    tensor.role = role;
    tensor.trainable = trainable;
    return tensor;
  };
  auto tensor = [](int32_t id) { return Arg::of(TensorId{id}); };
  Model model;
  model.name = "small";
  model.torch = "2.13.0";
  model.tensors = {with(value("fc.weight", {3, 2}, {2, 1}), Role::kParameter, true),
                   with(value("ids", {4}, {1}, DType::kInt64), Role::kBatchInput),
                   with(value("table", {8, 3}, {3, 1}), Role::kConstant),
                   with(value("count", {}, {}, DType::kInt64), Role::kBuffer),
                   value("fc/embedding:0", {4, 3}, {3, 1}),
                   value("fc/mm:0", {4, 2}, {2, 1}),
                   value("loss/sum:0", {}, {}),
                   value("loss/sum.grad.0:0", {4, 2}, {0, 0}),
                   value("fc/mm.grad.0:0", {3, 4}, {1, 3}),
                   value("fc/mm.grad.1:0", {3, 2}, {2, 1}),
                   value("count/add:0", {}, {}, DType::kInt64),
                   with(value("head.bias", {2}, {1}), Role::kParameter, true)};
  model.tensors[1].high = 8;
  Arg one{.kind = Arg::kFloat, .number = 1.0};
  Arg f32{.kind = Arg::kDType, .text = "float32"};
  model.ops = {
      {"fc/embedding", "aten.embedding.default", {tensor(2), tensor(1)}, {}, {TensorId{4}}},
      {"fc/mm", "aten.mm.default", {tensor(4), tensor(0)}, {}, {TensorId{5}}},
      {"loss/sum", "aten.sum.default", {tensor(5)}, {{"dtype", f32}}, {TensorId{6}}},
      {"loss/sum.grad.0", "aten.full.default", {Arg::list({4, 2}), one}, {}, {TensorId{7}}, true},
      {"fc/mm.grad.0", "aten.t.default", {tensor(4)}, {}, {TensorId{8}}, true},
      {"fc/mm.grad.1", "aten.mm.default", {tensor(8), tensor(7)}, {}, {TensorId{9}}, true},
      {"count/add", "aten.add.Tensor", {tensor(3), Arg::of(int64_t{1})}, {}, {TensorId{10}}, true},
  };
  model.loss = TensorId{6};
  model.gradients = {{TensorId{0}, TensorId{9}}};
  model.buffers = {{TensorId{3}, TensorId{10}}};
  return model;
}

}  // namespace partita::model
