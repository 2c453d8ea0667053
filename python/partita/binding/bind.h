#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "model/model.h"

// The Python module `_partita`: a file for every folder of src/ that it shows. Only run.cc and tensors.cc
// include headers of torch; the others compile in seconds. Models cross as handles, plans as their JSON.
namespace partita::python {

namespace py = pybind11;
using namespace measure;

/// The exceptions of base/error.h become the classes of partita.errors.
void bind_errors();
void bind_model(py::module_& m);
void bind_plan(py::module_& m);
void bind_run(py::module_& m);
void bind_cli(py::module_& m);

/// The model of a handle (`_partita.Model`), or of the text of a model's file.
std::shared_ptr<const Model> model_of(const py::object& given);

}  // namespace partita::python
