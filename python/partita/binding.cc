// The Python module `_partita`. Tensors cross as pointers to dense CPU memory; models, plans and programs as
// their JSON files.
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <pybind11/functional.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/error.h"
#include "lower/lower.h"
#include "model/row.h"
#include "plan/design.h"
#include "plan/fit.h"
#include "profile/storage.h"
#include "run/runnable.h"
#include "run/session.h"
#include "run/straight_line.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/value.h"
#include "run/torch/workspace.h"
#include "verify_here.h"

namespace partita::python {
namespace {

using TensorDict = std::map<std::string, at::Tensor>;

// Dense CPU tensors, kept alive while their views are used.
class Given {
 public:
  Given(const TensorDict& tensors, const char* what) {
    for (const auto& [name, tensor] : tensors) {
      if (!tensor.device().is_cpu())
        input_error("{}: {} is on {}, the runtime needs it on the CPU; try .cpu()", what, name,
                    tensor.device().str());
      at::Tensor dense = tensor.contiguous();
      views_.emplace(name, HostView(dense.sizes().vec(), dtype_of(dense.scalar_type()),
                                    static_cast<const std::byte*>(dense.const_data_ptr())));
      kept_.push_back(std::move(dense));
    }
  }
  const HostViews& views() const { return views_; }

 private:
  std::vector<at::Tensor> kept_;
  HostViews views_;
};

// Hands the memory over without a copy.
at::Tensor to_tensor(HostTensor value) {
  auto* owner = new HostTensor(std::move(value));
  return at::from_blob(
      owner->data.data(), owner->shape, [owner](void*) { delete owner; },
      at::TensorOptions().dtype(scalar_type(owner->dtype)));
}

TensorDict to_tensors(HostTensors values) {
  TensorDict tensors;
  for (auto& [name, value] : values) tensors.emplace(name, to_tensor(std::move(value)));
  return tensors;
}

OptimizerSpec to_optimizer(const py::dict& dict) {
  if (dict.empty()) return {.name = "none"};
  Json json = parse_json(py::cast<std::string>(py::module_::import("json").attr("dumps")(dict)), "optimizer");
  return read_optimizer(JsonIn(json, "optimizer"));
}

int threads_for(size_t ranks, int threads) {
  return threads > 0 ? threads : std::max(1, at::get_num_threads() / static_cast<int>(ranks));
}

// With a plan what it says, without one the step as captured, on one device.
Session open_session(const std::string& model_json, const TensorDict& weights, const std::string& plan_json,
                     const py::dict& optimizer, int threads, bool recoverable) {
  Model model = parse_model(model_json, "model");
  Given given(weights, "weights");
  OptimizerSpec spec = to_optimizer(optimizer);
  py::gil_scoped_release release;
  if (plan_json.empty()) {
    LeafSizes leaves = plain_leaves(model);
    Program program = straight_line(model, spec, leaves);
    return Session({model, program, leaves}, given.views(),
                   {.threads_per_rank = threads_for(1, threads), .recoverable = recoverable});
  }
  Proved proved = prove::prove(model, parse_plan(plan_json, "plan"));
  size_t ranks = proved.lowered().program.ranks.size();
  return Session(runnable(proved), given.views(),
                 {.threads_per_rank = threads_for(ranks, threads), .recoverable = recoverable});
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

py::tuple run_step(const std::string& model_json, const TensorDict& weights, const TensorDict& batch,
                   int threads) {
  Session session = open_session(model_json, weights, "", py::dict(), threads, false);
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

std::vector<OpBytes> workspace(const std::string& model_json, const TensorDict& weights,
                               const TensorDict& batch) {
  Model model = parse_model(model_json, "model");
  Given given(weights, "weights"), inputs(batch, "batch");
  std::vector<OpBytes> rows;
  std::vector<Bytes> outputs = outputs_said(model);
  for (const OpMemory& memory : measure_workspace(model, given.views(), inputs.views()))
    rows.emplace_back(model[memory.op].name, memory.outputs, memory.workspace,
                      workspace_of(view_of(model, model[memory.op])), outputs[memory.op.value],
                      memory.lies_as_said);
  return rows;
}

/// A Design with the model it refers to.
struct OwnDesign {
  OwnDesign(const std::string& json, int64_t ranks)
      : model(parse_model(json, "model")), design(model, ranks) {}
  Model model;
  Design design;
};

void bind_design(py::module_& m) {
  using Names = std::vector<std::string>;
  py::class_<OwnDesign>(m, "Design", "A plan by hand: see partita.design.")
      .def(py::init<const std::string&, int64_t>(), py::arg("model"), py::arg("ranks"))
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
      .def("cut", [](OwnDesign& d, int64_t count, int passes) { return cut(d.model, count, passes); })
      .def("plan", [](OwnDesign& d) { return to_json(d.design.plan()); });
}

}  // namespace
}  // namespace partita::python

PYBIND11_MODULE(_partita, m) {
  using namespace partita::python;
  py::object errors = py::module_::import("partita.errors");
  // They are the package's own classes, whoever throws them.
  static py::object* input = new py::object(errors.attr("InputError"));
  static py::object* run = new py::object(errors.attr("RunError"));
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const InputError& error) {
      PyErr_SetString(input->ptr(), error.what());
    } catch (const RunError& error) {
      PyErr_SetString(run->ptr(), error.what());
    }
  });
  m.def(
      "has_row", [](const std::string& target) { return find_row(target) != nullptr; }, py::arg("target"),
      "Is there a built-in row for this op, such as aten.mm.default?");
  m.def(
      "signatures",
      [] {
        std::map<std::string, std::pair<std::string, int>> all;
        for (std::span<const Row> table : row_tables())
          for (const Row& row : table)
            all.emplace(row.target, std::pair(std::string(row.arguments), row.outputs));
        return all;
      },
      "{op with a row: (names of its arguments, number of its results; -1: one list)}.");
  m.def(
      "opaque_on_purpose",
      [] {
        std::vector<std::string> targets;
        for (const OpaqueOnPurpose& op : opaque_on_purpose()) targets.emplace_back(op.target);
        return targets;
      },
      "Ops that have no row because any row would lie.");
  m.def(
      "fit_plan",
      [](const std::string& model, const std::string& plan) -> std::optional<std::string> {
        std::optional<Plan> fitted = fit(parse_plan(plan, "plan"), parse_model(model, "model"));
        return fitted ? std::optional(to_json(*fitted)) : std::nullopt;
      },
      py::arg("model"), py::arg("plan"), py::call_guard<py::gil_scoped_release>(),
      "The plan for another step of the same module; None where that cannot run so.");
  m.def("run_step", &run_step, py::arg("model"), py::arg("weights"), py::arg("batch"), py::arg("threads") = 0,
        "One forward and backward of a captured step on one device: (loss, gradients, new buffers).");
  m.def("workspace", &workspace, py::arg("model"), py::arg("weights"), py::arg("batch"),
        "What each op of a step allocates on one device: (op, bytes of its outputs, hidden temporary bytes, "
        "those that its row predicts, bytes of outputs predicted, whether these lie as the model says).");
  m.def(
      "verify",
      [](const std::string& model, const std::string& plan, const TensorDict& constants,
         const std::string& dtype, double tolerance, uint64_t seed, bool ignored_labels,
         bool no_inferred_rows) {
        Given given(constants, "constants");
        py::gil_scoped_release release;  // ops of one's own may be written in Python
        return verify_here(model, plan, given.views(),
                           {dtype, no_inferred_rows, {seed, tolerance, ignored_labels}})
            .dump();
      },
      py::arg("model"), py::arg("plan"), py::arg("constants"), py::arg("dtype") = "",
      py::arg("tolerance") = 0.0, py::arg("seed") = 0, py::arg("ignored_labels") = false,
      py::arg("no_inferred_rows") = false,
      "Three steps of the plan and of one device on the same batches, compared: JSON as of the verb.");
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
  bind_design(m);
}
