#pragma once

#include <gtest/gtest.h>

#include "certify/certificate.h"
#include "lower/lower.h"
#include "plan/recipes/recipe.h"

namespace partita::prove {

// clang-format off
enum NetTensor : int32_t {
  kX, kW, kP1, kP2, kK, kF, kH, kS, kS2, kS3, kM, kHi, kLo, kO, kL, kZ, kLoss,
  kG, kGz, kGl, kGo, kGhi, kGlo, kGm, kGs, kXt, kGw
};
// clang-format on

/// m = x @ w + p1 + p2 + k + f with a buffer k and a frozen f; l = sum(m[:, 1:] + m[:, :-1]); the loss is
/// l + l / 2, so that backward adds the gradient of the loss to a half of it. p1 and p2 share their gradient.
inline Model net() {
  Model model;
  model.name = "net";
  auto add = [&](const char* name, Shape shape, Role role = Role::kValue, Shape strides = {}) {
    if (strides.empty())
      for (size_t d = shape.size(); d-- > 0;)
        strides.insert(strides.begin(), d + 1 == shape.size() ? 1 : strides[0] * shape[d + 1]);
    model.tensors.push_back({.name = name, .shape = shape, .strides = strides, .role = role});
    model.tensors.back().trainable = role == Role::kParameter;
  };
  add("x", {4, 6}, Role::kBatchInput);
  add("fc.weight", {6, 6}, Role::kParameter);
  for (const char* name : {"fc.p1", "fc.p2"}) add(name, {6}, Role::kParameter);
  add("fc.k", {6}, Role::kBuffer);
  add("fc.f", {6}, Role::kParameter);
  model.tensors.back().trainable = false;
  add("h", {4, 6});
  for (const char* name : {"s", "s2", "s3"}) add(name, {6});
  add("m", {4, 6});
  for (const char* name : {"hi", "lo"}) add(name, {4, 5}, Role::kValue, {6, 1});
  add("o", {4, 5});
  for (const char* name : {"l", "z", "loss", "g", "gz", "gl"}) add(name, {});
  add("go", {4, 5}, Role::kValue, {0, 0});
  for (const char* name : {"ghi", "glo", "gm"}) add(name, {4, 6});
  add("gs", {6});
  add("xt", {6, 4}, Role::kValue, {1, 6});
  add("gw", {6, 6});
  auto t = [](int32_t id) { return Arg::of(TensorId{id}); };
  auto n = [](int64_t value) { return Arg::of(value); };
  Arg half{.kind = Arg::kFloat, .number = 0.5}, one{.kind = Arg::kFloat, .number = 1};
  auto op = [&](const char* name, const char* target, std::vector<Arg> args, int32_t out) {
    model.ops.push_back({name, target, std::move(args), {}, {TensorId{out}}, out > kLoss});
  };
  op("fc/mm", "aten.mm.default", {t(kX), t(kW)}, kH);
  op("fc/add", "aten.add.Tensor", {t(kP1), t(kP2)}, kS);
  op("fc/add.1", "aten.add.Tensor", {t(kS), t(kK)}, kS2);
  op("fc/add.2", "aten.add.Tensor", {t(kS2), t(kF)}, kS3);
  op("fc/add.3", "aten.add.Tensor", {t(kH), t(kS3)}, kM);
  op("loss/slice", "aten.slice.Tensor", {t(kM), n(1), n(1), n(6)}, kHi);
  op("loss/slice.1", "aten.slice.Tensor", {t(kM), n(1), n(0), n(5)}, kLo);
  op("loss/add", "aten.add.Tensor", {t(kHi), t(kLo)}, kO);
  op("loss/sum", "aten.sum.default", {t(kO)}, kL);
  op("loss/mul", "aten.mul.Scalar", {t(kL), half}, kZ);
  op("loss/add.1", "aten.add.Tensor", {t(kL), t(kZ)}, kLoss);
  op("loss/full", "aten.full.default", {Arg::list({}), one}, kG);
  op("loss/mul.grad", "aten.mul.Scalar", {t(kG), half}, kGz);
  op("loss/add.grad", "aten.add.Tensor", {t(kGz), t(kG)}, kGl);
  op("loss/expand", "aten.expand.default", {t(kGl), Arg::list({4, 5})}, kGo);
  op("loss/slice.grad", "aten.slice_backward.default", {t(kGo), Arg::list({4, 6}), n(1), n(1), n(6), n(1)},
     kGhi);
  op("loss/slice.1.grad", "aten.slice_backward.default", {t(kGo), Arg::list({4, 6}), n(1), n(0), n(5), n(1)},
     kGlo);
  op("fc/add.grad", "aten.add.Tensor", {t(kGhi), t(kGlo)}, kGm);
  op("fc/sum.grad", "aten.sum.dim_IntList", {t(kGm), Arg::list({0})}, kGs);
  op("fc/t", "aten.t.default", {t(kX)}, kXt);
  op("fc/mm.grad", "aten.mm.default", {t(kXt), t(kGm)}, kGw);
  model.loss = TensorId{kLoss};
  model.gradients = {
      {TensorId{kW}, TensorId{kGw}}, {TensorId{kP1}, TensorId{kGs}}, {TensorId{kP2}, TensorId{kGs}}};
  return model;
}

inline OptimizerSpec sgd(double clip = 0, double loss_scale = 0) {
  OptimizerSpec spec{.name = "sgd", .lr = 0.1, .clip = clip};
  spec.precision.loss_scale = loss_scale;
  return spec;
}

inline Lowered lowered(const RecipeSpec& spec) {
  Model model = net();
  Lowered out = lower::lower(model, recipe(model, spec));
  EXPECT_EQ(certify::certify(out.model, out.atoms, out.program, spec.optimizer), std::vector<std::string>{});
  return out;
}

inline void expect_refused(const Lowered& wrong, const std::string& why) {
  std::vector<std::string> said = certify::certify(wrong.model, wrong.atoms, wrong.program);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find(why), std::string::npos) << said[0];
}

/// The body and place of the instruction that computes this op.
inline std::pair<Body*, size_t> find(Lowered& in, const std::string& op) {
  for (Body& body : in.program.bodies)
    for (size_t i = 0; i < body.instrs.size(); ++i)
      if (body.instrs[i].kind == InstrKind::kCompute && in.model[body.instrs[i].op].name == op)
        return {&body, i};
  throw std::logic_error("no instruction computes " + op);
}

/// Adds in place, to `into` of its two operands, what the op adds.
inline void add_in_place(Lowered& in, const std::string& op, int into) {
  auto [body, at] = find(in, op);
  Instr& instr = body->instrs[at];
  instr = {.kind = InstrKind::kAdd,
           .in = {instr.in[into], instr.in[1 - into]},
           .out = instr.out,
           .sum = instr.op,
           .drop = instr.drop};
  std::erase(instr.drop, instr.out[0]);
}

/// The first instruction of a kind, and the body that it is in.
inline std::pair<Body*, size_t> find(Lowered& in, InstrKind kind) {
  for (Body& body : in.program.bodies)
    for (size_t i = 0; i < body.instrs.size(); ++i)
      if (body.instrs[i].kind == kind) return {&body, i};
  throw std::logic_error("no such instruction");
}

/// Does the first instruction of a kind, in place, once more.
inline void do_twice(Lowered& in, InstrKind kind) {
  auto [body, at] = find(in, kind);
  Instr again = body->instrs[at];
  body->instrs[at].drop.clear();
  again.in[0] = again.out[0];
  body->instrs.insert(body->instrs.begin() + static_cast<int64_t>(at) + 1, again);
}

}  // namespace partita::prove
