#include <fmt/format.h>

#include <set>

#include "model/axes.h"
#include "model/model.h"

namespace partita {
namespace {

using Sentences = std::vector<std::string>;

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model), made_(model.tensors.size(), false) {}

  Sentences run() {
    ids_in_range();
    if (!wrong_.empty()) return wrong_;  // every further rule looks tensors up
    names_are_unique();
    tensors_are_sound();
    letters_fit();
    made_once_before_read();
    loss_is_scalar();
    gradients_match();
    buffers_match();
    return wrong_;
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    wrong_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  bool known(TensorId id) const { return id && static_cast<size_t>(id.value) < model_.tensors.size(); }

  void ids_in_range() {
    auto need = [&](TensorId id, std::string_view whose) {
      if (!known(id)) say("{} names tensor %{}, which does not exist", whose, id.value);
    };
    for (const Op& op : model_.ops) {
      for (TensorId id : inputs_of(op)) need(id, "op " + op.name);
      for (TensorId id : op.outputs) {
        if (id) need(id, "op " + op.name);
      }
    }
    need(model_.loss, "the loss");
    for (const auto* pairs : {&model_.gradients, &model_.buffers}) {
      for (const auto& [first, second] : *pairs)
        need(first, "a gradient or buffer"), need(second, "a gradient or buffer");
    }
  }

  void names_are_unique() {
    std::set<std::string_view> tensors, ops;
    for (const Tensor& tensor : model_.tensors) {
      if (!tensors.insert(tensor.name).second) say("two tensors are named {}", tensor.name);
    }
    for (const Op& op : model_.ops) {
      if (!ops.insert(op.name).second) say("two ops are named {}", op.name);
    }
  }

  void tensors_are_sound() {
    for (const Tensor& tensor : model_.tensors) {
      if (tensor.strides.size() != tensor.shape.size())
        say("tensor {} has {} dimensions but {} strides", tensor.name, tensor.shape.size(),
            tensor.strides.size());
      if (is_complex(tensor.dtype) && (tensor.role == Role::kParameter || tensor.role == Role::kBatchInput))
        say("{} is complex; parameters and batch inputs are real", tensor.name);
      bool whole = !is_floating(tensor.dtype) && tensor.dtype != DType::kBool;
      if (tensor.role == Role::kBatchInput && whole && tensor.low >= tensor.high)
        say("batch input {} holds whole numbers but has no range to draw them from", tensor.name);
    }
  }

  void letters_fit() {
    for (const Op& op : model_.ops) {
      if (op.axes.empty()) continue;
      std::string wrong = check_axes(view_of(model_, op));
      if (!wrong.empty()) say("op {} ({}): its row \"{}\" {}", op.name, op.target, op.axes, wrong);
    }
  }

  void made_once_before_read() {
    for (size_t i = 0; i < model_.tensors.size(); ++i) made_[i] = model_.tensors[i].role != Role::kValue;
    for (const Op& op : model_.ops) {
      for (TensorId id : inputs_of(op)) {
        if (!made_[id.value]) say("op {} reads {} before any op makes it", op.name, model_[id].name);
      }
      for (TensorId id : op.outputs) {
        if (id) make(op, id);
      }
    }
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!made_[i]) say("no op makes tensor {}", model_.tensors[i].name);
    }
  }

  void make(const Op& op, TensorId id) {
    if (model_[id].role != Role::kValue)
      say("op {} makes {}, which is an input of the step", op.name, model_[id].name);
    else if (made_[id.value])
      say("op {} makes {}, which another op made already", op.name, model_[id].name);
    made_[id.value] = true;
  }

  void loss_is_scalar() {
    const Tensor& loss = model_[model_.loss];
    if (!loss.shape.empty() || !is_floating(loss.dtype))
      say("the loss {} is {}[{}], needs to be one floating number", loss.name, dtype_name(loss.dtype),
          fmt::join(loss.shape, ","));
  }

  /// Marks what the loss is computed from. Whole numbers carry no gradient, so `floating` follows only the
  /// others.
  std::vector<bool> used_by_loss(bool floating) const {
    std::vector<bool> used(model_.tensors.size(), false);
    used[model_.loss.value] = true;
    for (auto op = model_.ops.rbegin(); op != model_.ops.rend(); ++op) {
      bool leads = false;
      for (TensorId id : op->outputs) leads |= id && used[id.value];
      if (!leads) continue;
      for (TensorId id : inputs_of(*op))
        used[id.value] = used[id.value] || !floating || is_floating(model_[id].dtype);
    }
    return used;
  }

  void gradients_match() {
    std::set<TensorId> has;
    for (const auto& [parameter, gradient] : model_.gradients) {
      const Tensor& tensor = model_[parameter];
      if (tensor.role != Role::kParameter || !tensor.trainable)
        say("{} has a gradient but is not a trainable parameter", tensor.name);
      if (!has.insert(parameter).second) say("parameter {} has two gradients", tensor.name);
      if (model_[gradient].shape != tensor.shape)
        say("the gradient of {} has shape [{}], needs [{}]", tensor.name,
            fmt::join(model_[gradient].shape, ","), fmt::join(tensor.shape, ","));
    }
    std::vector<bool> used = used_by_loss(false), differentiable = used_by_loss(true);
    for (size_t i = 0; i < model_.tensors.size(); ++i) {
      const Tensor& tensor = model_.tensors[i];
      if (tensor.role != Role::kParameter || !tensor.trainable) continue;
      bool found = has.contains(TensorId{static_cast<int32_t>(i)});
      if (differentiable[i] && !found) say("the loss uses parameter {}, which has no gradient", tensor.name);
      if (!used[i] && found) say("parameter {} has a gradient but the loss does not use it", tensor.name);
    }
    backward_is_marked(used);
  }

  void backward_is_marked(const std::vector<bool>& used) {
    for (const Op& op : model_.ops) {
      bool leads = false;
      for (TensorId id : op.outputs) leads |= id && used[id.value];
      if (leads && op.backward) say("op {} is marked backward but the loss needs it", op.name);
    }
  }

  void buffers_match() {
    std::set<TensorId> seen;
    for (const auto& [buffer, value] : model_.buffers) {
      const Tensor &before = model_[buffer], &after = model_[value];
      if (before.role != Role::kBuffer) say("{} gets a new value but is not a buffer", before.name);
      if (!seen.insert(buffer).second) say("buffer {} gets two new values", before.name);
      if (before.shape != after.shape || before.dtype != after.dtype)
        say("the new value of buffer {} has another shape or dtype", before.name);
    }
  }

  const Model& model_;
  std::vector<bool> made_;
  Sentences wrong_;
};

}  // namespace

std::vector<std::string> check(const Model& model) { return Checker(model).run(); }

}  // namespace partita
