#include "cli/training.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/names.h"
#include "cli/checks.h"

namespace partita::cli {
namespace {

/// What people mean by a word: compute and keep parameters in half precision, update a full copy.
struct PrecisionRow {
  const char* name;
  const char* dtype;
  Precision precision;
};
const PrecisionRow kPrecisions[] = {
    {"fp32", "float32", {}},
    {"bf16", "bfloat16", {.grad = DType::kFloat32, .master = DType::kFloat32}},
    {"fp16", "float16", {.grad = DType::kFloat32, .master = DType::kFloat32, .loss_scale = 65536}}};

DType role_dtype(const std::string& text, const std::string& where) {
  DType dtype = parse_dtype(text, where);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64)
    input_error("{}: is {}, needs to be float32 or float64", where, text);
  return dtype;
}

double scale_of(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !(value > 0) || !std::isfinite(value))
    input_error("--precision loss_scale: \"{}\" is not a number above 0", text);
  return value;
}

void set_role(const std::string& setting, Precision& precision) {
  const std::vector<std::string> known = {"grad", "master", "loss_scale", "bf16", "fp16", "fp32"};
  size_t equals = setting.find('=');
  std::string role = setting.substr(0, equals),
              value = equals == setting.npos ? "" : setting.substr(equals + 1);
  if (role == "grad" && !value.empty()) {
    precision.grad = role_dtype(value, "--precision grad");
  } else if (role == "master" && !value.empty()) {
    precision.master = role_dtype(value, "--precision master");
  } else if (role == "loss_scale" && !value.empty()) {
    precision.loss_scale = scale_of(value);
  } else {
    bool eight_bits = role.find('8') != role.npos;
    input_error("--precision: \"{}\"; write bf16, fp16, or for example grad=float32,master=float32{}",
                setting, eight_bits ? "; 8-bit floats are not there yet" : did_you_mean(role, known));
  }
}

/// What a config.json says its model is trained in: as people mean it, with float32 copies beside.
std::vector<std::string> config_precision(const ModelInput& model) {
  std::optional<AskedDType> asked = asked_dtype(model);
  if (!asked) return {};
  for (const PrecisionRow& row : kPrecisions) {
    if (row.dtype != dtype_name(asked->dtype)) continue;
    note(model, fmt::format("{} taken as --precision {}", asked->text, row.name));
    return {row.name};
  }
  return {};  // float64 needs no copies: it is taken as --dtype
}

}  // namespace

void add_training_input(CLI::App& app, TrainingInput& input) {
  app.add_option("--optimizer", input.optimizer, "adamw, sgd, momentum (sgd with it) or none")
      ->check(one_of({"adamw", "sgd", "momentum", "none"}))
      ->capture_default_str();
  app.add_option("--clip", input.clip, "largest norm of all gradients together");
  app.add_option(
         "--precision", input.precision,
         "bf16 or fp16: compute in it, keep float32 copies of the parameters, fp16 with a loss scale; or "
         "grad=, master=, loss_scale= by hand")
      ->delimiter(',')
      ->allow_extra_args(false);
}

OptimizerSpec optimizer_named(const std::string& name) {
  if (name == "momentum") return {.name = "sgd", .momentum = 0.9};
  return {.name = name};
}

OptimizerSpec load(const TrainingInput& input, ModelInput& model) {
  if (input.clip && !(*input.clip > 0))
    input_error("--clip: is {}, needs to be above 0; leave it out to clip nothing", *input.clip);
  OptimizerSpec optimizer = optimizer_named(input.optimizer);
  optimizer.clip = input.clip.value_or(0);
  std::vector<std::string> settings = input.precision.empty() ? config_precision(model) : input.precision;
  for (const std::string& setting : settings) {
    const PrecisionRow* known = nullptr;
    for (const PrecisionRow& row : kPrecisions)
      if (row.name == setting) known = &row;
    if (!known) {
      set_role(setting, optimizer.precision);
      continue;
    }
    optimizer.precision = known->precision;
    if (model.dtype.empty()) model.dtype = known->dtype;
    if (parse_dtype(model.dtype, "--dtype") != parse_dtype(known->dtype, "--precision"))
      input_error("--precision {} computes in {}, and --dtype says {}; leave one of them out", setting,
                  known->dtype, model.dtype);
  }
  return optimizer;
}

}  // namespace partita::cli
