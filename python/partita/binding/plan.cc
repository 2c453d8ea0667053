#include "plan/plan.h"

#include <pybind11/stl.h>

#include "bind.h"
#include "plan/design.h"
#include "plan/fit.h"
#include "waiting.h"

namespace partita::python {
namespace {

/// A Design with the model it refers to.
struct OwnDesign {
  OwnDesign(const py::object& given, int64_t ranks) : model(model_of(given)), design(*model, ranks) {}
  std::shared_ptr<const Model> model;
  Design design;
};

void bind_design(py::module_& m) {
  using Names = std::vector<std::string>;
  py::class_<OwnDesign>(m, "Design", "A plan by hand: see partita.design.")
      .def(py::init<const py::object&, int64_t>(), py::arg("model"), py::arg("ranks"))
      .def("split", [](OwnDesign& d, const std::string& ops, const std::string& atom, int64_t parts,
                       const std::string& axis) { d.design.split(ops, atom, parts, axis); })
      .def("assign", [](OwnDesign& d, const Names& ops,
                        const std::vector<int32_t>& devices) { d.design.assign(ops, devices); })
      .def("loop", [](OwnDesign& d, const Names& ops, const std::string& atom, int64_t pieces,
                      bool through) { d.design.loop(ops, atom, pieces, through); })
      .def("store", [](OwnDesign& d, const std::string& params, const std::string& what,
                       const std::string& axis) { d.design.store(params, what, axis); })
      .def("recompute",
           [](OwnDesign& d, const Names& ops, const Names& keep) { d.design.recompute(ops, keep); })
      .def("microbatches", [](OwnDesign& d, int64_t count) { d.design.microbatches(count); })
      .def("order", [](OwnDesign& d, const std::string& schedule) { d.design.order(schedule); })
      .def("order", [](OwnDesign& d, const Names& rows) { d.design.order(rows); })
      .def("cut", [](OwnDesign& d, int64_t count, int passes) { return cut(*d.model, count, passes); })
      .def("plan", [](OwnDesign& d) { return to_json(d.design.plan()); });
}

std::optional<std::string> fit_plan(const py::object& given, const std::string& plan) {
  std::shared_ptr<const Model> model = model_of(given);
  std::optional<Plan> fitted = waited([&] { return fit(parse_plan(plan, "plan"), *model); });
  return fitted ? std::optional(to_json(*fitted)) : std::nullopt;
}

}  // namespace

void bind_plan(py::module_& m) {
  m.def("fit_plan", &fit_plan, py::arg("model"), py::arg("plan"),
        "The plan for another step of the same module; None where that cannot run so.");
  bind_design(m);
}

}  // namespace partita::python
