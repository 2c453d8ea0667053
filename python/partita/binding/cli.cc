#include <pybind11/stl.h>

#include "bind.h"
#include "cli/ask.h"
#include "waiting.h"

namespace partita::python {
namespace {

/// A dense tensor on the CPU, which the caller keeps alive: its shape, dtype and address.
using TensorAt = std::tuple<Shape, std::string, uintptr_t>;

HostView view_of(const std::string& name, const TensorAt& tensor) {
  const auto& [shape, dtype, address] = tensor;
  return {shape, parse_dtype(dtype, name), reinterpret_cast<const std::byte*>(address)};
}

std::string ask(std::vector<std::string> words, std::map<std::string, std::shared_ptr<Model>> models,
                const std::map<std::string, TensorAt>& constants, std::map<std::string, std::string> texts,
                const py::object& progress) {
  cli::Question question{.words = std::move(words), .texts = std::move(texts)};
  question.models.insert(models.begin(), models.end());
  for (const auto& [name, tensor] : constants) question.constants.emplace(name, view_of(name, tensor));
  std::string answer;
  wait_for(
      [&](const search::ShowProgress& tell) {
        question.progress = tell;
        answer = cli::ask(question);
      },
      progress);
  return answer;
}

}  // namespace

void bind_cli(py::module_& m) {
  m.def("ask", &ask, py::arg("words"), py::arg("models"), py::arg("constants"), py::arg("texts"),
        py::arg("progress") = py::none(),
        "What the command answers to these words, in this process; `models` and `texts` stand for files.");
}

}  // namespace partita::python
