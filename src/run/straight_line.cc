#include "run/straight_line.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "model/row.h"

namespace partita::run {
namespace {

class Writer {
 public:
  Writer(const Model& model, const OptimizerSpec& optimizer, const LeafSizes& leaves)
      : model_(model), leaves_(leaves), slots_(model.tensors.size()), last_reader_(model.tensors.size(), -1) {
    program_.optimizer = optimizer;
    program_.ranks.resize(1);
    program_.bodies.push_back({.name = "step"});
  }

  Program write() {
    for (size_t t = 0; t < model_.tensors.size(); ++t)
      if (model_.tensors[t].role != Role::kValue) load(TensorId{static_cast<int32_t>(t)}, -1);
    place_results();
    find_last_readers();
    for (size_t i = 0; i < model_.ops.size(); ++i) compute(OpId{static_cast<int32_t>(i)});
    if (program_.optimizer.name != "none")
      for (const auto& [parameter, gradient] : model_.gradients) optimize(parameter, gradient);
    rank().actions.push_back({.kind = ActionKind::kRun, .body = BodyId{0}});
    return std::move(program_);
  }

 private:
  RankProgram& rank() { return program_.ranks[0]; }
  Body& body() { return program_.bodies[0]; }
  Slot& slot(TensorId id) { return slots_[id.value]; }
  Slot new_rank_slot() { return {Space::kRank, rank().rank_slots++}; }

  TypeId type_of(TensorId id) {
    const Tensor& tensor = model_[id];
    auto [found, added] =
        types_.try_emplace({tensor.shape, tensor.strides, tensor.dtype}, program_.types.size());
    if (added) program_.types.push_back({tensor.shape, tensor.strides, tensor.dtype});
    return {static_cast<int32_t>(found->second)};
  }

  Box whole_box(TensorId id) const {
    Box box;
    for (const auto& sizes : leaves_[id.value]) {
      auto& intervals = box.emplace_back();
      for (int64_t size : sizes) intervals.push_back({0, size});
    }
    return box;
  }

  Slot load(TensorId id, int32_t state) {
    Slot made = new_rank_slot();
    if (state < 0) slot(id) = made;
    rank().loads.push_back(
        {.slot = made, .tensor = id, .box = whole_box(id), .type = type_of(id), .state = state});
    return made;
  }

  void place_result(Result::Kind kind, TensorId value, TensorId named) {
    if (slot(value).index < 0) slot(value) = new_rank_slot();
    rank().results.push_back({kind, slot(value), named, whole_box(named)});
  }

  void place_results() {
    place_result(Result::kLoss, model_.loss, model_.loss);
    for (const auto& [parameter, gradient] : model_.gradients) {
      place_result(Result::kGradient, gradient, gradient);
      if (program_.optimizer.name != "none") place_result(Result::kParameter, parameter, parameter);
    }
    for (const auto& [buffer, value] : model_.buffers) place_result(Result::kBuffer, value, buffer);
  }

  void find_last_readers() {
    for (size_t i = 0; i < model_.ops.size(); ++i)
      for (TensorId input : inputs_of(model_.ops[i])) last_reader_[input.value] = static_cast<int32_t>(i);
  }

  // In a Model a tensor argument is an id, in an instruction an index into its inputs.
  Arg localize(Arg arg, Instr& instr) {
    if (arg.kind == Arg::kTensor) {
      instr.in.push_back(slot(arg.tensor));
      arg.tensor = {static_cast<int32_t>(instr.in.size()) - 1};
    }
    for (Arg& item : arg.items) item = localize(item, instr);
    return arg;
  }

  void compute(OpId id) {
    const Op& op = model_[id];
    Instr instr{.op = id, .view = is_view(op)};
    for (const Arg& arg : op.args) instr.args.push_back(localize(arg, instr));
    for (const auto& [name, arg] : op.kwargs) instr.kwargs.emplace_back(name, localize(arg, instr));
    std::set<Slot> drop;
    for (TensorId input : inputs_of(op))
      if (slot(input).space == Space::kLocal && last_reader_[input.value] == id.value)
        drop.insert(slot(input));
    for (TensorId output : op.outputs) put_output(output, instr);
    free_locals_.insert(drop.begin(), drop.end());
    instr.drop.assign(drop.begin(), drop.end());
    body().instrs.push_back(std::move(instr));
  }

  void put_output(TensorId output, Instr& instr) {
    bool read = output && (last_reader_[output.value] >= 0 || slot(output).index >= 0);
    instr.types.push_back(output ? type_of(output) : TypeId{});
    if (read && slot(output).index < 0) slot(output) = new_local();
    instr.out.push_back(read ? slot(output) : Slot{});
  }

  Slot new_local() {
    if (free_locals_.empty()) return {Space::kLocal, body().locals++};
    return free_locals_.extract(free_locals_.begin()).value();
  }

  void optimize(TensorId parameter, TensorId gradient) {
    Instr instr{
        .kind = InstrKind::kOptimize, .in = {slot(parameter), slot(gradient)}, .out = {slot(parameter)}};
    instr.settings = settings_of(program_.optimizer, whole_name(model_, parameter));
    for (int32_t state = 0; state < optimizer_states(program_.optimizer); ++state)
      instr.in.push_back(load(parameter, state));
    instr.types = {type_of(parameter)};
    body().instrs.push_back(std::move(instr));
  }

  const Model& model_;
  const LeafSizes& leaves_;
  Program program_;
  std::vector<Slot> slots_;           // by tensor
  std::vector<int32_t> last_reader_;  // by tensor: op
  std::set<Slot> free_locals_;
  std::map<std::tuple<Shape, Shape, DType>, size_t> types_;
};

}  // namespace

Program straight_line(const Model& model, const OptimizerSpec& optimizer, const LeafSizes& leaves) {
  return Writer(model, optimizer, leaves).write();
}

}  // namespace partita::run
