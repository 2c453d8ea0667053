#include "model/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/names.h"

namespace partita::model {
namespace {

template <class Numbers>
struct NumberRow {
  const char* key;
  double Numbers::*field;
  std::optional<double> least = 0;  // torch's own bounds
  std::optional<double> below = {};
  bool always = true;  // written where it is what is read without it, too
};
template <class Numbers>
constexpr NumberRow<Numbers> kNumbers[] = {{"lr", &Numbers::lr},
                                           {"beta1", &Numbers::beta1, 0, 1},
                                           {"beta2", &Numbers::beta2, 0, 1},
                                           {"eps", &Numbers::eps},
                                           {"weight_decay", &Numbers::weight_decay},
                                           {"momentum", &Numbers::momentum},
                                           {"dampening", &Numbers::dampening, {}, {}, false}};

// What is absent is read as `otherwise`.
void write_numbers(const OptimizerGroup& numbers, const OptimizerGroup& otherwise, Json& out) {
  for (const auto& row : kNumbers<OptimizerGroup>)
    if (row.always || numbers.*row.field != otherwise.*row.field) out[row.key] = numbers.*row.field;
  if (numbers.nesterov != otherwise.nesterov) out["nesterov"] = numbers.nesterov;
}

template <class Numbers>
void check_bounds(const JsonIn& in, double value, const NumberRow<Numbers>& row) {
  if ((!row.least || value >= *row.least) && (!row.below || value < *row.below)) return;
  in.fail(fmt::format("is {}, needs to be {} or more{}; try {}", value, row.least.value_or(0),
                      row.below ? fmt::format(" and below {}", *row.below) : "", Numbers{}.*row.field));
}

template <class Numbers>
void read_numbers(const JsonIn& in, Numbers& out) {
  for (const auto& row : kNumbers<Numbers>) {
    if (!in.has(row.key)) continue;
    out.*row.field = in[row.key].number();
    check_bounds(in[row.key], out.*row.field, row);
  }
  if (in.has("nesterov")) out.nesterov = in["nesterov"].boolean();
}

// A group names what differs from the optimizer's own numbers.
OptimizerGroup read_group(const JsonIn& in, OptimizerGroup own) {
  in.only({"params", "lr", "beta1", "beta2", "eps", "weight_decay", "momentum", "dampening", "nesterov"});
  JsonIn params = in["params"];
  for (size_t i = 0; i < params.size(); ++i) own.params.push_back(params[i].text());
  read_numbers(in, own);
  return own;
}

constexpr std::string_view kOptimizers[] = {"adamw", "adam", "sgd", "none"};

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
  if (optimizer.name == "adamw" || optimizer.name == "adam") return 2;
  bool momentum = optimizer.momentum != 0;
  for (const OptimizerGroup& group : optimizer.groups) momentum |= group.momentum != 0;
  return optimizer.name == "sgd" && momentum ? 1 : 0;
}

int32_t settings_of(const OptimizerSpec& optimizer, std::string_view parameter) {
  for (size_t g = 0; g < optimizer.groups.size(); ++g)
    for (const std::string& pattern : optimizer.groups[g].params)
      if (matches(pattern, parameter)) return static_cast<int32_t>(g) + 1;
  return 0;
}

OptimizerGroup numbers_of(const OptimizerSpec& optimizer, int32_t settings) {
  if (settings > 0) return optimizer.groups[settings - 1];
  return {{},
          optimizer.lr,
          optimizer.beta1,
          optimizer.beta2,
          optimizer.eps,
          optimizer.weight_decay,
          optimizer.momentum,
          optimizer.dampening,
          optimizer.nesterov};
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
  const OptimizerGroup own = numbers_of(optimizer, 0);
  write_numbers(own, {}, out);
  if (optimizer.clip > 0) out["clip"] = optimizer.clip;
  for (const OptimizerGroup& group : optimizer.groups) {
    Json one = {{"params", group.params}};
    write_numbers(group, own, one);
    out["groups"].push_back(std::move(one));
  }
  return out;
}

OptimizerSpec read_optimizer(const JsonIn& in) {
  in.only({"name", "lr", "beta1", "beta2", "eps", "weight_decay", "momentum", "dampening", "nesterov", "clip",
           "groups"});
  OptimizerSpec out{.name = in["name"].text()};
  if (std::find(std::begin(kOptimizers), std::end(kOptimizers), out.name) == std::end(kOptimizers))
    in["name"].fail(fmt::format("is \"{}\", needs to be one of {}", out.name, fmt::join(kOptimizers, ", ")));
  read_numbers(in, out);
  if (in.has("clip")) out.clip = read_positive(in["clip"]);
  if (in.has("groups"))
    for (size_t g = 0; g < in["groups"].size(); ++g)
      out.groups.push_back(read_group(in["groups"][g], numbers_of(out, 0)));
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

}  // namespace partita::model
