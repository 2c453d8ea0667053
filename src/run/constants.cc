#include "run/constants.h"

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
  HostTensors values;
  std::string path = file_beside(file);
  HostTensors stored;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != Role::kConstant) continue;
    if (stored.empty()) {
      if (!std::filesystem::exists(path))
        input_error(
            "{}: the step has constants, their values belong into {}, which is not there; capture again "
            "or copy both files together",
            file, path);
      stored = load_safetensors(path);
    }
    auto found = stored.find(tensor.name);
    if (found == stored.end() || found->second.shape != tensor.shape)
      input_error("{}: holds no value of the right shape for {} of {}; capture the step again", path,
                  tensor.name, file);
    HostTensor& value = found->second;
    values[tensor.name] =
        value.dtype == tensor.dtype ? value : from_doubles(tensor.shape, tensor.dtype, to_doubles(value));
  }
  return values;
}

}  // namespace partita::run
