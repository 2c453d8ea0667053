#include "run/constants.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "run/safetensors.h"

namespace partita::run {
namespace {

constexpr std::string_view kModelSuffix = ".model.json";

std::string file_beside(const std::string& model_file) {
  std::string stem = model_file;
  if (stem.ends_with(kModelSuffix)) stem.resize(stem.size() - kModelSuffix.size());
  return stem + ".constants.safetensors";
}

}  // namespace

HostTensors load_constants(const std::string& file, const Model& model) {
  auto is_constant = [](const Tensor& tensor) { return tensor.role == Role::kConstant; };
  if (std::none_of(model.tensors.begin(), model.tensors.end(), is_constant)) return {};
  std::string path = file_beside(file);
  if (!std::filesystem::exists(path))
    input_error(
        "{}: the step has constants, their values belong into {}, which is not there; capture again "
        "or copy both files together",
        file, path);
  HostTensors stored = load_safetensors(path);
  return constants_of(model, views_of(stored), path, file);
}

HostTensors constants_of(const Model& model, const HostViews& values, const std::string& where,
                         const std::string& file) {
  HostTensors constants;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != Role::kConstant) continue;
    auto found = values.find(tensor.name);
    if (found == values.end() || found->second.shape != tensor.shape)
      input_error("{}: holds no value of the right shape for {} of {}; capture the step again", where,
                  tensor.name, file);
    const HostView& value = found->second;
    constants[tensor.name] = value.dtype == tensor.dtype
                                 ? copy_of(value)
                                 : from_doubles(tensor.shape, tensor.dtype, to_doubles(value));
  }
  return constants;
}

}  // namespace partita::run
