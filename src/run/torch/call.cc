#include "run/torch/call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/row.h"
#include "run/torch/accumulation.h"
#include "run/torch/argument.h"
#include "run/torch/view.h"

namespace partita::run {
namespace {

// A tensor argument: which slot, and whether this is where its value dies.
struct Input {
  Slot slot;
  bool last = false;
};

// One position of the argument stack.
struct Item {
  enum Kind : uint8_t { kConstant, kTensor, kTensors, kOptionalTensors };
  Kind kind = kConstant;
  c10::IValue constant;
  std::vector<Input> inputs;  // in a list of optional tensors a missing one has index -1
};

// ATen implements the first by allocating a wrapped number and dispatching the second; here the number is
// made once.
struct TensorForm {
  std::string_view scalar, tensor;
};
constexpr TensorForm kTensorForms[] = {
    {"aten.add.Scalar", "aten.add.Tensor"},   {"aten.sub.Scalar", "aten.sub.Tensor"},
    {"aten.rsub.Scalar", "aten.rsub.Tensor"}, {"aten.mul.Scalar", "aten.mul.Tensor"},
    {"aten.div.Scalar", "aten.div.Tensor"},   {"aten.remainder.Scalar", "aten.remainder.Tensor"},
    {"aten.eq.Scalar", "aten.eq.Tensor"},     {"aten.ne.Scalar", "aten.ne.Tensor"},
    {"aten.lt.Scalar", "aten.lt.Tensor"},     {"aten.le.Scalar", "aten.le.Tensor"},
    {"aten.gt.Scalar", "aten.gt.Tensor"},     {"aten.ge.Scalar", "aten.ge.Tensor"},
};

// Kernels that keep what their gradient needs only while gradients are recorded.
constexpr std::string_view kAskGradMode[] = {"aten.mkldnn_rnn_layer.default"};

c10::OperatorHandle find_operator(const Op& op) {
  std::string target = op.target;
  for (const TensorForm& form : kTensorForms)
    if (form.scalar == target) target = form.tensor;
  // A kernel may lay its result out in another way than the tracer believed; then a view needs a copy.
  if (target == "aten.view.default") target = "aten.reshape.default";
  size_t dot = target.find('.'), last = target.rfind('.');
  if (dot == std::string::npos || dot == last)
    input_error("op {}: target \"{}\" is not of the form aten.name.overload", op.name, op.target);
  std::string name = target.substr(0, dot) + "::" + target.substr(dot + 1, last - dot - 1);
  std::string overload = target.substr(last + 1);
  auto found = c10::Dispatcher::singleton().findSchema({name, overload == "default" ? "" : overload});
  if (!found)
    input_error("op {}: this torch has no {}; capture with the torch that runs it", op.name, op.target);
  return *found;
}

bool has_tensor(const Arg& arg) {
  return arg.kind == Arg::kTensor || std::any_of(arg.items.begin(), arg.items.end(), has_tensor);
}

// The dtype in which an op computes with a number beside its tensors, where that is certain: all of them are
// float32 or all float64. A wrapped number of that dtype needs no conversion at each call. (Half precisions
// compute with the unrounded number.)
std::optional<DType> number_dtype(const Model& model, const Op& op) {
  std::optional<DType> dtype;
  for (TensorId input : inputs_of(op)) {
    if (dtype && *dtype != model[input].dtype) return std::nullopt;
    dtype = model[input].dtype;
  }
  bool plain = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  return plain ? dtype : std::nullopt;
}

Item make_item(const Arg& arg, const c10::Argument& formal, const Instr& instr, std::optional<DType> number,
               const std::string& where) {
  Item item;
  auto input = [&](const Arg& a) {
    return a.kind == Arg::kTensor ? Input{instr.in[a.tensor.value]} : Input{};
  };
  if (arg.kind == Arg::kTensor) {
    item.kind = Item::kTensor;
    item.inputs = {input(arg)};
  } else if (has_tensor(arg)) {
    item.kind = takes_optional_tensors(formal) ? Item::kOptionalTensors : Item::kTensors;
    for (const Arg& a : arg.items) item.inputs.push_back(input(a));
  } else {
    item.constant = constant_argument(arg, formal, number, where);
  }
  return item;
}

const Arg* find_argument(const Instr& instr, size_t position, const std::string& name) {
  if (position < instr.args.size()) return &instr.args[position];
  for (const auto& [key, arg] : instr.kwargs)
    if (key == name) return &arg;
  return nullptr;
}

std::vector<Item> make_items(const Model& model, const Instr& instr, const c10::FunctionSchema& schema) {
  const Op& op = model[instr.op];
  std::optional<DType> number = number_dtype(model, op);
  std::vector<Item> items;
  size_t used = 0;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& formal = schema.arguments()[i];
    std::string where = fmt::format("op {} ({}): argument {}", op.name, op.target, formal.name());
    if (const Arg* arg = find_argument(instr, i, formal.name())) {
      items.push_back(make_item(*arg, formal, instr, number, where));
      ++used;
    } else if (formal.default_value()) {
      items.push_back({Item::kConstant, *formal.default_value(), {}});
    } else {
      input_error("{} is missing", where);
    }
  }
  if (used != instr.args.size() + instr.kwargs.size())
    input_error("op {}: {} takes {} arguments, the model gives {} of another kind", op.name, op.target,
                items.size(), instr.args.size() + instr.kwargs.size() - used);
  return items;
}

// The last mention of a slot that dies here takes the value out of it, so that the kernel holds the only
// reference.
void mark_last(std::vector<Item>& items, std::set<Slot>& drop) {
  for (auto item = items.rbegin(); item != items.rend(); ++item)
    for (auto input = item->inputs.rbegin(); input != item->inputs.rend(); ++input)
      if (input->slot.index >= 0) input->last = drop.erase(input->slot) > 0;
}

at::Tensor take(const Slots& slots, const Input& input) {
  at::Tensor& slot = slots[input.slot];
  if (!slot.defined()) throw RunError("reads a slot that holds no value");
  if (!input.last) return slot;
  return std::move(slot);
}

void push(const Item& item, const Slots& slots, torch::jit::Stack& stack) {
  if (item.kind == Item::kConstant) {
    stack.push_back(item.constant);
  } else if (item.kind == Item::kTensor) {
    stack.emplace_back(take(slots, item.inputs[0]));
  } else if (item.kind == Item::kTensors) {
    c10::List<at::Tensor> list;
    for (const Input& input : item.inputs) list.push_back(take(slots, input));
    stack.emplace_back(std::move(list));
  } else {
    c10::List<std::optional<at::Tensor>> list;
    for (const Input& input : item.inputs)
      list.push_back(input.slot.index < 0 ? std::nullopt : std::optional(take(slots, input)));
    stack.emplace_back(std::move(list));
  }
}

void put(const Slots& slots, Slot slot, at::Tensor value) {
  if (slot.index >= 0) slots[slot] = std::move(value);
}

// Storages that are told apart even after they are freed.
using Storages = std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>;

void note(const at::Tensor& tensor, Storages& storages) {
  if (tensor.defined() && tensor.has_storage()) storages.push_back(tensor.storage().getWeakStorageImpl());
}

Storages storages_of(const torch::jit::Stack& stack) {
  Storages storages;
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) note(value.toTensor(), storages);
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) note(tensor, storages);
  }
  return storages;
}

// An op may return what it was given, whatever its schema says; the Program counts on a tensor of its own.
at::Tensor own(at::Tensor value, Storages& others) {
  if (!value.defined() || !value.has_storage()) return value;
  const c10::StorageImpl* storage = value.storage().unsafeGetStorageImpl();
  bool shared = std::any_of(others.begin(), others.end(),
                            [&](const auto& other) { return other._unsafe_get_target() == storage; });
  if (shared) value = value.clone();
  note(value, others);
  return value;
}

std::vector<at::Tensor> results_of(torch::jit::Stack& stack, size_t count, bool spreads) {
  std::vector<at::Tensor> values;
  if (spreads) {
    values = stack[0].toTensorVector();
    if (values.size() < count)
      throw RunError(fmt::format("returned {} tensors, {} wanted", values.size(), count));
  } else {
    for (size_t i = 0; i < count; ++i)
      values.push_back(stack[i].isNone() ? at::Tensor() : std::move(stack[i]).toTensor());
  }
  stack.clear();
  return values;
}

// The stride of a dimension that has one element. It moves nothing, but a kernel that asks whether channels
// lie last reads it: ranks whose shard has one channel must answer as the others do.
struct SingleStride {
  Slot slot;
  int64_t dim = 0, stride = 0;
};

std::vector<SingleStride> single_strides(const Instr& instr, const std::vector<Slot>& out,
                                         const Program* program) {
  constexpr size_t kImage = 4;  // dimensions from which on kernels know channels last
  std::vector<SingleStride> found;
  for (size_t o = 0; program && o < out.size(); ++o) {
    if (out[o].index < 0 || !instr.types[o]) continue;
    const TensorType& type = (*program)[instr.types[o]];
    for (size_t d = 0; type.shape.size() >= kImage && d < type.shape.size(); ++d)
      if (type.shape[d] == 1) found.push_back({out[o], static_cast<int64_t>(d), type.strides[d]});
  }
  return found;
}

void set_stride(at::Tensor& value, int64_t dim, int64_t stride) {
  if (!value.defined() || dim >= value.dim() || value.size(dim) != 1 || value.stride(dim) == stride) return;
  c10::DimVector strides(value.strides().begin(), value.strides().end());
  strides[dim] = stride;
  value = value.as_strided(value.sizes(), strides, value.storage_offset());
}

}  // namespace

struct Call::Prepared {
  std::optional<Accumulation> accumulation;  // done instead
  std::optional<View> view;                  // tried first
  c10::OperatorHandle op;
  std::vector<Item> items;
  std::vector<Slot> drop;  // what dies here and is no argument
  std::vector<Slot> out;
  bool spreads = false;         // returns one list of tensors
  bool asks_grad_mode = false;  // in kAskGradMode
  bool trusted = false;         // what it makes lies where the instruction says: it has a row, or is a view
  std::vector<SingleStride> single;
};

void Call::call_boxed(const Prepared& prepared, torch::jit::Stack& stack) {
  if (!prepared.asks_grad_mode) return prepared.op.callBoxed(stack);
  c10::AutoGradMode record(true);
  prepared.op.callBoxed(stack);
}

Call::Call(const Model& model, const Instr& instr, const Program* program, Way way) {
  const Op& op = model[instr.op];
  c10::OperatorHandle handle = find_operator(op);
  const c10::FunctionSchema& schema = handle.schema();
  std::vector<Item> items = make_items(model, instr, schema);
  std::set<Slot> drop(instr.drop.begin(), instr.drop.end());
  mark_last(items, drop);
  bool spreads =
      schema.returns().size() == 1 && schema.returns()[0].type()->kind() == c10::TypeKind::ListType;
  if (!spreads && schema.returns().size() < instr.out.size())
    input_error("op {}: {} returns {} values, the program wants {}", op.name, op.target,
                schema.returns().size(), instr.out.size());
  std::vector<Slot> out = instr.out;
  for (Slot& slot : out)
    if (drop.erase(slot)) slot.index = -1;
  std::vector<SingleStride> single = single_strides(instr, out, program);
  bool asks_grad_mode =
      std::find(std::begin(kAskGradMode), std::end(kAskGradMode), op.target) != std::end(kAskGradMode);
  prepared_ = std::make_unique<Prepared>(Prepared{Accumulation::make(op, instr),
                                                  way == Way::kShort ? View::make(op, instr) : std::nullopt,
                                                  handle,
                                                  std::move(items),
                                                  {drop.begin(), drop.end()},
                                                  std::move(out),
                                                  spreads,
                                                  asks_grad_mode,
                                                  instr.view || find_row(op.target),
                                                  std::move(single)});
}

Call::~Call() = default;
Call::Call(Call&&) noexcept = default;

void Call::run(const Slots& slots, torch::jit::Stack& stack) const {
  compute(slots, stack);
  for (const SingleStride& one : prepared_->single) set_stride(slots[one.slot], one.dim, one.stride);
}

void Call::compute(const Slots& slots, torch::jit::Stack& stack) const {
  const Prepared& p = *prepared_;
  if (p.accumulation) return p.accumulation->run(slots);
  if (p.view && p.view->run(slots)) return;
  stack.clear();
  for (const Item& item : p.items) push(item, slots, stack);
  if (!p.trusted) return run_apart(slots, stack);
  call_boxed(p, stack);
  for (Slot slot : p.drop) slots[slot].reset();
  if (p.spreads) {
    std::vector<at::Tensor> values = stack[0].toTensorVector();
    if (values.size() < p.out.size())
      throw RunError(fmt::format("returned {} tensors, {} wanted", values.size(), p.out.size()));
    for (size_t i = 0; i < p.out.size(); ++i) put(slots, p.out[i], std::move(values[i]));
  } else {
    for (size_t i = 0; i < p.out.size(); ++i)
      put(slots, p.out[i], stack[i].isNone() ? at::Tensor() : std::move(stack[i]).toTensor());
  }
  stack.clear();
}

void Call::run_apart(const Slots& slots, torch::jit::Stack& stack) const {
  const Prepared& p = *prepared_;
  Storages others = storages_of(stack);
  call_boxed(p, stack);
  std::vector<at::Tensor> values = results_of(stack, p.out.size(), p.spreads);
  for (at::Tensor& value : values) value = own(std::move(value), others);
  for (Slot slot : p.drop) slots[slot].reset();
  for (size_t i = 0; i < p.out.size(); ++i) put(slots, p.out[i], std::move(values[i]));
}

}  // namespace partita::run
