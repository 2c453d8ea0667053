#include "model/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

namespace partita {
namespace {

struct NumberRow {
  const char* key;
  double OptimizerSpec::*field;
};
constexpr NumberRow kNumbers[] = {{"lr", &OptimizerSpec::lr},
                                  {"beta1", &OptimizerSpec::beta1},
                                  {"beta2", &OptimizerSpec::beta2},
                                  {"eps", &OptimizerSpec::eps},
                                  {"weight_decay", &OptimizerSpec::weight_decay},
                                  {"momentum", &OptimizerSpec::momentum}};

DType read_role(const JsonIn& in) {
  std::optional<DType> dtype = find_dtype(in.text());
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64)
    in.fail(fmt::format("is \"{}\", needs to be float32 or float64", in.text()));
  return *dtype;
}

double read_positive(const JsonIn& in) {
  double value = in.number();
  if (!(value > 0)) in.fail(fmt::format("is {}, needs to be more than 0", value));
  return value;
}

}  // namespace

int optimizer_states(const OptimizerSpec& optimizer) {
  if (optimizer.name == "adamw") return 2;
  return optimizer.name == "sgd" && optimizer.momentum != 0 ? 1 : 0;
}

DType widened(DType own, std::optional<DType> role) {
  bool wider = role && is_floating(own) && !is_complex(own) && dtype_bytes(*role) > dtype_bytes(own);
  return wider ? *role : own;
}

DType updated_dtype(const OptimizerSpec& optimizer, DType own) {
  return widened(own, optimizer.precision.master);
}

bool has_master(const OptimizerSpec& optimizer, DType own) {
  return optimizer.name != "none" && updated_dtype(optimizer, own) != own;
}

LossScale after_step(LossScale scale, bool overflowed) {
  if (overflowed) return {scale.value / 2, 0};
  if (++scale.good_steps < kScaleGrowth) return scale;
  return {scale.value * 2, 0};
}

Json optimizer_json(const OptimizerSpec& optimizer) {
  Json out = {{"name", optimizer.name}};
  for (const NumberRow& row : kNumbers) out[row.key] = optimizer.*row.field;
  if (optimizer.clip > 0) out["clip"] = optimizer.clip;
  return out;
}

OptimizerSpec read_optimizer(const JsonIn& in) {
  in.only({"name", "lr", "beta1", "beta2", "eps", "weight_decay", "momentum", "clip"});
  OptimizerSpec out{.name = in["name"].text()};
  if (out.name != "adamw" && out.name != "sgd" && out.name != "none")
    in["name"].fail(fmt::format("is \"{}\", needs to be adamw, sgd or none", out.name));
  for (const NumberRow& row : kNumbers)
    if (in.has(row.key)) out.*row.field = in[row.key].number();
  if (in.has("clip")) out.clip = read_positive(in["clip"]);
  return out;
}

Json precision_json(const Precision& precision) {
  Json out = Json::object();
  if (precision.grad) out["grad"] = dtype_name(*precision.grad);
  if (precision.master) out["master"] = dtype_name(*precision.master);
  if (precision.loss_scale > 0) out["loss_scale"] = precision.loss_scale;
  return out;
}

Precision read_precision(const JsonIn& in) {
  in.only({"grad", "master", "loss_scale"});
  Precision out;
  if (in.has("grad")) out.grad = read_role(in["grad"]);
  if (in.has("master")) out.master = read_role(in["master"]);
  if (in.has("loss_scale")) out.loss_scale = read_positive(in["loss_scale"]);
  return out;
}

}  // namespace partita
