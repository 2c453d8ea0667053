#include "model/model.h"

#include <pybind11/stl.h>

#include "bind.h"
#include "model/row.h"

namespace partita::python {
namespace {

std::shared_ptr<Model> parsed(const std::string& text) {
  py::gil_scoped_release release;
  return std::make_shared<Model>(parse_model(text, "model"));
}

std::map<std::string, std::pair<std::string, int>> signatures() {
  std::map<std::string, std::pair<std::string, int>> all;
  for (std::span<const Row> table : row_tables())
    for (const Row& row : table) all.emplace(row.target, std::pair(std::string(row.arguments), row.outputs));
  return all;
}

std::vector<std::string> opaque_targets() {
  std::vector<std::string> targets;
  for (const OpaqueOnPurpose& op : opaque_on_purpose()) targets.emplace_back(op.target);
  return targets;
}

}  // namespace

std::shared_ptr<const Model> model_of(const py::object& given) {
  if (py::isinstance<py::str>(given)) return parsed(py::cast<std::string>(given));
  return py::cast<std::shared_ptr<Model>>(given);
}

void bind_model(py::module_& m) {
  py::class_<Model, std::shared_ptr<Model>>(m, "Model", "A captured step, parsed; never changed.")
      .def(py::init(&parsed), py::arg("text"));
  m.def(
      "has_row", [](const std::string& target) { return find_row(target) != nullptr; }, py::arg("target"),
      "Is there a built-in row for this op, such as aten.mm.default?");
  m.def("signatures", &signatures,
        "{op with a row: (names of its arguments, number of its results; -1: one list)}.");
  m.def("opaque_on_purpose", &opaque_targets, "Ops that have no row because any row would lie.");
}

}  // namespace partita::python
