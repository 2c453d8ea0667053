#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/axes.h"
#include "model/fault.h"
#include "model/own_memory.h"
#include "model/row.h"
#include "model/seed.h"

namespace partita::model {
namespace {

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model), made_(model.tensors.size(), false) {}

  std::vector<ModelFault> run() {
    ids_in_range();
    if (!wrong_.empty()) return std::move(wrong_);  // every further rule looks tensors up
    names_are_unique();
    tensors_are_sound();
    letters_fit();
    made_once_before_read();
    loss_is_scalar();
    seed_is_one();
    gradients_match();
    buffers_match();
    if (wrong_.empty()) operands_fit();
    if (wrong_.empty()) places_are_there();
    return std::move(wrong_);
  }

 private:
  template <class... Args>
  void say(std::string path, fmt::format_string<Args...> text, Args&&... args) {
    wrong_.push_back({std::move(path), fmt::format(text, std::forward<Args>(args)...)});
  }
  static std::string at(const char* list, size_t i) { return fmt::format("{}[{}]", list, i); }

  bool known(TensorId id) const { return id && static_cast<size_t>(id.value) < model_.tensors.size(); }

  void need_known(TensorId id, const std::string& path, std::string_view whose) {
    if (!known(id)) say(path, "{} names tensor %{}, which does not exist", whose, id.value);
  }

  void ids_in_range() {
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      const Op& op = model_.ops[i];
      for (TensorId id : inputs_of(op)) need_known(id, at("ops", i), "op " + op.name);
      for (TensorId id : op.outputs)
        if (id) need_known(id, at("ops", i), "op " + op.name);
    }
    need_known(model_.loss, "loss", "the loss");
    if (model_.seed) need_known(model_.seed, "seed", "the seed");
    pairs_in_range("gradients", model_.gradients);
    pairs_in_range("buffers", model_.buffers);
  }

  void pairs_in_range(const char* list, const std::vector<std::pair<TensorId, TensorId>>& pairs) {
    for (size_t i = 0; i < pairs.size(); ++i)
      for (TensorId id : {pairs[i].first, pairs[i].second})
        need_known(id, at(list, i), "a gradient or buffer");
  }

  void names_are_unique() {
    std::set<std::string_view> tensors, ops;
    for (size_t i = 0; i < model_.tensors.size(); ++i)
      if (!tensors.insert(model_.tensors[i].name).second)
        say(at("tensors", i), "two tensors are named {}", model_.tensors[i].name);
    for (size_t i = 0; i < model_.ops.size(); ++i)
      if (!ops.insert(model_.ops[i].name).second)
        say(at("ops", i), "two ops are named {}", model_.ops[i].name);
  }

  void tensors_are_sound() {
    for (size_t i = 0; i < model_.tensors.size(); ++i) {
      const Tensor& tensor = model_.tensors[i];
      if (tensor.strides.size() != tensor.shape.size())
        say(at("tensors", i), "tensor {} has {} dimensions but {} strides", tensor.name, tensor.shape.size(),
            tensor.strides.size());
      if (is_complex(tensor.dtype) && (tensor.role == Role::kParameter || tensor.role == Role::kBatchInput))
        say(at("tensors", i), "{} is complex; parameters and batch inputs are real", tensor.name);
      bool whole = !is_floating(tensor.dtype) && tensor.dtype != DType::kBool;
      if (tensor.role == Role::kBatchInput && whole && tensor.low >= tensor.high)
        say(at("tensors", i), "batch input {} holds whole numbers but has no range to draw them from",
            tensor.name);
    }
  }

  void letters_fit() {
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      const Op& op = model_.ops[i];
      if (op.axes.empty() && op.inferred)
        say(at("ops", i), "op {} ({}): its row is marked inferred, but it has none", op.name, op.target);
      if (op.axes.empty()) continue;
      std::string wrong = check_axes(view_of(model_, op));
      if (!wrong.empty())
        say(at("ops", i), "op {} ({}): its row \"{}\" {}", op.name, op.target, op.axes, wrong);
    }
  }

  void made_once_before_read() {
    for (size_t i = 0; i < model_.tensors.size(); ++i) made_[i] = model_.tensors[i].role != Role::kValue;
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      const Op& op = model_.ops[i];
      for (TensorId id : inputs_of(op))
        if (!made_[id.value])
          say(at("ops", i), "op {} reads {} before any op makes it", op.name, model_[id].name);
      for (TensorId id : op.outputs)
        if (id) make(i, id);
    }
    for (size_t i = 0; i < made_.size(); ++i)
      if (!made_[i]) say(at("tensors", i), "no op makes tensor {}", model_.tensors[i].name);
  }

  void make(size_t i, TensorId id) {
    const Op& op = model_.ops[i];
    if (model_[id].role != Role::kValue)
      say(at("ops", i), "op {} makes {}, which is an input of the step", op.name, model_[id].name);
    else if (made_[id.value])
      say(at("ops", i), "op {} makes {}, which another op made already", op.name, model_[id].name);
    made_[id.value] = true;
  }

  void loss_is_scalar() {
    const Tensor& loss = model_[model_.loss];
    if (!loss.shape.empty() || !is_floating(loss.dtype))
      say("loss", "the loss {} is {}[{}], needs to be one floating number", loss.name, dtype_name(loss.dtype),
          fmt::join(loss.shape, ","));
  }

  void seed_is_one() {
    bool made = std::any_of(model_.ops.begin(), model_.ops.end(), [&](const Op& op) {
      return may_make_seed(model_, op) && op.outputs[0] == model_.seed;
    });
    if (model_.seed && !made)
      say("seed", "{} is not the gradient of the loss, which is made of ones after forward",
          model_[model_.seed].name);
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
    for (size_t i = 0; i < model_.gradients.size(); ++i) {
      auto [parameter, gradient] = model_.gradients[i];
      const Tensor& tensor = model_[parameter];
      if (tensor.role != Role::kParameter || !tensor.trainable)
        say(at("gradients", i), "{} has a gradient but is not a trainable parameter", tensor.name);
      if (!has.insert(parameter).second)
        say(at("gradients", i), "parameter {} has two gradients", tensor.name);
      if (!is_floating(tensor.dtype) || model_[gradient].dtype != tensor.dtype)
        say(at("gradients", i), "{} is {} and its gradient {}; both need to be the same floating dtype",
            tensor.name, dtype_name(tensor.dtype), dtype_name(model_[gradient].dtype));
      if (model_[gradient].shape != tensor.shape)
        say(at("gradients", i), "the gradient of {} has shape [{}], needs [{}]", tensor.name,
            fmt::join(model_[gradient].shape, ","), fmt::join(tensor.shape, ","));
    }
    std::vector<bool> used = used_by_loss(false), differentiable = used_by_loss(true);
    for (size_t i = 0; i < model_.tensors.size(); ++i) {
      const Tensor& tensor = model_.tensors[i];
      if (tensor.role != Role::kParameter || !tensor.trainable) continue;
      bool found = has.contains(TensorId{static_cast<int32_t>(i)});
      if (differentiable[i] && !found)
        say(at("tensors", i), "the loss uses parameter {}, which has no gradient", tensor.name);
      if (!used[i] && found)
        say(at("tensors", i), "parameter {} has a gradient but the loss does not use it", tensor.name);
    }
    backward_is_marked(used);
  }

  void backward_is_marked(const std::vector<bool>& used) {
    std::vector<bool> late(model_.tensors.size(), false);  // made by an op that is marked backward
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      const Op& op = model_.ops[i];
      bool leads = false;
      for (TensorId id : op.outputs) leads |= id && used[id.value];
      if (leads && op.backward) say(at("ops", i), "op {} is marked backward but the loss needs it", op.name);
      for (TensorId id : inputs_of(op))
        if (late[id.value] && !op.backward)
          say(at("ops", i), "op {} reads {}, which backward makes, but is not marked backward itself",
              op.name, model_[id].name);
      for (TensorId id : op.outputs)
        if (id) late[id.value] = op.backward;
    }
  }

  void buffers_match() {
    std::set<TensorId> seen;
    for (size_t i = 0; i < model_.buffers.size(); ++i) {
      auto [buffer, value] = model_.buffers[i];
      const Tensor &before = model_[buffer], &after = model_[value];
      if (before.role != Role::kBuffer)
        say(at("buffers", i), "{} gets a new value but is not a buffer", before.name);
      if (!seen.insert(buffer).second) say(at("buffers", i), "buffer {} gets two new values", before.name);
      if (before.shape != after.shape || before.dtype != after.dtype)
        say(at("buffers", i), "the new value of buffer {} has another shape or dtype", before.name);
    }
  }

  /// Shapes and dtypes of ops that have a row.
  void operands_fit() {
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      const Op& op = model_.ops[i];
      try {
        check_operands(model_, op);
      } catch (const Mismatch& mismatch) {
        say(at("ops", i), "op {} ({}): {}", op.name, op.target, mismatch.what());
      }
    }
  }

  void places_are_there() {
    std::vector<const Op*> makers(model_.tensors.size());
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      const Op& op = model_.ops[i];
      std::string wrong = strays_in_memory(model_, makers, op);
      if (!wrong.empty()) say(at("ops", i), "op {} ({}): {}", op.name, op.target, wrong);
      for (TensorId id : op.outputs)
        if (id) makers[id.value] = &op;
    }
  }

  const Model& model_;
  std::vector<bool> made_;
  std::vector<ModelFault> wrong_;
};

}  // namespace

std::vector<ModelFault> faults_of(const Model& model) { return Checker(model).run(); }

std::vector<std::string> check(const Model& model) {
  std::vector<std::string> sentences;
  for (ModelFault& fault : faults_of(model)) sentences.push_back(std::move(fault.sentence));
  return sentences;
}

}  // namespace partita::model
