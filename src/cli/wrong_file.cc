#include "cli/wrong_file.h"

#include "base/error.h"

namespace partita::cli {

void refuse_weights(const std::string& file, const std::string& needed) {
  constexpr std::string_view kWeights[] = {".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".onnx", ".gguf"};
  for (std::string_view suffix : kWeights)
    if (file.ends_with(suffix)) input_error("{}: a {} file holds weights; give {}", file, suffix, needed);
}

void refuse_plan(const std::string& file, const std::string& text) {
  constexpr size_t kHead = 100;  // the format is the first key that we write
  if (text.substr(0, kHead).find("\"partita.plan\"") != text.npos)
    input_error("{}: this is a plan, and a model is needed here; MODEL comes first, then PLAN", file);
}

}  // namespace partita::cli
