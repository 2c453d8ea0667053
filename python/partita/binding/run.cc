// Session: a step that is proved, then run on thread ranks. Beside it what tests and benches ask the runtime.

#include <ATen/Parallel.h>
#include <pybind11/functional.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/error.h"
#include "bind.h"
#include "model/row.h"
#include "profile/storage.h"
#include "prove/prove.h"
#include "run/runnable.h"
#include "run/session.h"
#include "run/straight_line.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/workspace.h"
#include "tensors.h"
#include "waiting.h"

namespace partita::python {
namespace {

OptimizerSpec to_optimizer(const py::dict& dict) {
  if (dict.empty()) return {.name = "none"};
  Json json = parse_json(py::cast<std::string>(py::module_::import("json").attr("dumps")(dict)), "optimizer");
  return read_optimizer(JsonIn(json, "optimizer"));
}

int threads_for(size_t ranks, int threads) {
  return threads > 0 ? threads : std::max(1, at::get_num_threads() / static_cast<int>(ranks));
}

// The step as captured, on one device.
Session open_captured(const Model& model, const HostViews& weights, const OptimizerSpec& spec,
                      const RunOptions& options) {
  LeafSizes leaves = plain_leaves(model);
  Program program = straight_line(model, spec, leaves);
  return Session({model, program, leaves}, weights, options);
}

// With a plan what it says; the optimizer is then the plan's own.
Session open_session(const py::object& model_given, const TensorDict& weights, const std::string& plan_json,
                     const py::dict& optimizer, int threads, bool recoverable) {
  std::shared_ptr<const Model> model = model_of(model_given);
  Given given(weights, "weights");
  OptimizerSpec spec = to_optimizer(optimizer);
  RunOptions options{.threads_per_rank = threads_for(1, threads), .recoverable = recoverable};
  if (plan_json.empty()) {
    py::gil_scoped_release release;
    return open_captured(*model, given.views(), spec, options);
  }
  Proved proved = waited([&] { return prove::prove(*model, parse_plan(plan_json, "plan")); });
  py::gil_scoped_release release;
  options.threads_per_rank = threads_for(proved.lowered().program.ranks.size(), threads);
  return Session(runnable(proved), given.views(), options);
}

StepReport timed_step(Session& session, const TensorDict& batch) {
  Given given(batch, "batch");
  py::gil_scoped_release release;
  return session.step(given.views());
}

double step(Session& session, const TensorDict& batch) { return timed_step(session, batch).loss; }

py::dict report_step(Session& session, const TensorDict& batch) {
  StepReport report = timed_step(session, batch);
  py::dict out;
  out["loss"] = report.loss;
  out["seconds"] = report.seconds;
  out["skipped"] = report.skipped;
  out["loss_scale"] = report.loss_scale;
  return out;
}

py::dict lasting(const Session& session) {
  Lasting lasting;
  {
    py::gil_scoped_release release;
    lasting = session.lasting();
  }
  py::dict out;
  out["tensors"] = to_tensors(std::move(lasting.tensors));
  py::list states;
  for (HostTensors& state : lasting.states) states.append(to_tensors(std::move(state)));
  out["states"] = states;
  out["steps"] = lasting.steps;
  out["updates"] = lasting.updates;
  out["loss_scale"] = lasting.scale.value;
  out["good_steps"] = lasting.scale.good_steps;
  return out;
}

template <class T>
std::optional<T> optional_at(const py::dict& dict, const char* key) {
  return dict.contains(key) ? std::optional(py::cast<T>(dict[key])) : std::nullopt;
}

void take_over(Session& session, const py::dict& given) {
  Given tensors(py::cast<TensorDict>(given["tensors"]), "state");
  std::deque<Given> states;
  LastingViews views{.tensors = tensors.views(),
                     .steps = optional_at<int64_t>(given, "steps"),
                     .updates = optional_at<int64_t>(given, "updates")};
  if (given.contains("states"))
    for (py::handle state : given["states"]) {
      states.emplace_back(py::cast<TensorDict>(state), "state");
      views.states.push_back(states.back().views());
    }
  if (given.contains("loss_scale"))
    views.scale = {py::cast<double>(given["loss_scale"]), py::cast<int>(given["good_steps"])};
  py::gil_scoped_release release;
  session.take_over(views);
}

template <HostTensors Values::*Which, Result::Kind kind>
TensorDict values(const Session& session) {
  return to_tensors(std::move(session.values({kind}).*Which));
}

constexpr auto gradients = values<&Values::gradients, Result::kGradient>;
constexpr auto parameters = values<&Values::parameters, Result::kParameter>;
constexpr auto buffers = values<&Values::buffers, Result::kBuffer>;

py::tuple run_step(const py::object& model, const TensorDict& weights, const TensorDict& batch, int threads) {
  Session session = open_session(model, weights, "", py::dict(), threads, false);
  double loss = step(session, batch);
  return py::make_tuple(loss, gradients(session), buffers(session));
}

using OpBytes = std::tuple<std::string, Bytes, Bytes, Bytes, Bytes, bool>;

std::vector<Bytes> outputs_said(const Model& model) {
  std::vector<Bytes> bytes(model.ops.size());
  for (const Storage& storage : find_storages(model).all)
    if (storage.born >= 0) bytes[storage.born] += storage.bytes;
  return bytes;
}

std::vector<OpBytes> workspace(const py::object& model_given, const TensorDict& weights,
                               const TensorDict& batch) {
  std::shared_ptr<const Model> held = model_of(model_given);
  const Model& model = *held;
  Given given(weights, "weights"), inputs(batch, "batch");
  std::vector<OpBytes> rows;
  std::vector<Bytes> outputs = outputs_said(model);
  for (const OpMemory& memory : measure_workspace(model, given.views(), inputs.views()))
    rows.emplace_back(model[memory.op].name, memory.outputs, memory.workspace,
                      workspace_of(view_of(model, model[memory.op])), outputs[memory.op.value],
                      memory.lies_as_said);
  return rows;
}

}  // namespace

void bind_run(py::module_& m) {
  m.def("run_step", &run_step, py::arg("model"), py::arg("weights"), py::arg("batch"), py::arg("threads") = 0,
        "One forward and backward of a captured step on one device: (loss, gradients, new buffers).");
  m.def("workspace", &workspace, py::arg("model"), py::arg("weights"), py::arg("batch"),
        "What each op of a step allocates on one device: (op, bytes of its outputs, hidden temporary bytes, "
        "those that its row predicts, bytes of outputs predicted, whether these lie as the model says).");
  m.def("peak_of", &peak_of, py::arg("call"),
        "Calls it and returns the most bytes of CPU tensors it held at once, above those there before.");
  py::class_<Session>(m, "Session", "A step with its parameters and optimizer states, on thread ranks.")
      .def(py::init(&open_session), py::arg("model"), py::arg("weights"), py::arg("plan") = "",
           py::arg("optimizer") = py::dict(), py::arg("threads") = 0, py::arg("recoverable") = false)
      .def("step", &step, py::arg("batch"), "One step on the global batch: the loss.")
      .def(
          "optimizer_seconds",
          [](Session& session, const TensorDict& batch) {
            return timed_step(session, batch).optimizer_seconds;
          },
          py::arg("batch"), "One step: the seconds its rank with most of them spent in optimizer updates.")
      .def("report_step", &report_step, py::arg("batch"),
           "One step on the global batch: loss, seconds, skipped, loss_scale.")
      .def(
          "set_optimizer",
          [](Session& session, const py::dict& optimizer) { session.set_optimizer(to_optimizer(optimizer)); },
          py::arg("optimizer"), "Its numbers, for the steps from now on.")
      .def("lasting", &lasting, "What lasts from step to step: tensors, states, steps, updates, loss scale.")
      .def("take_over", &take_over, py::arg("given"), "Replaces what is given of it.")
      .def("release", &Session::release, py::call_guard<py::gil_scoped_release>(),
           "Lets go of all that lasts, until take_over gives it again.")
      .def("gradient_norm", &Session::gradient_norm, py::call_guard<py::gil_scoped_release>(),
           "Of all gradients of the last step, before they were clipped.")
      .def("steps", &Session::steps, "That were finished.")
      .def("updates", &Session::updates, "Steps that have updated parameters.")
      .def("gradients", gradients)
      .def("parameters", parameters, "Updated parameters after the last step, whole.")
      .def("buffers", buffers)
      .def("peak_bytes", &Session::peak_bytes, "By rank, since the beginning.");
}

}  // namespace partita::python
