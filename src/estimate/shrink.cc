#include "estimate/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace partita::estimate {
namespace {

constexpr size_t kKept = 2;  // layers of a run: one beside what stands before it, one among its like

std::vector<int32_t> producers(const Model& model) {
  std::vector<int32_t> by(model.tensors.size(), -1);
  for (size_t i = 0; i < model.ops.size(); ++i)
    for (TensorId id : model.ops[i].outputs)
      if (id) by[id.value] = static_cast<int32_t>(i);
  return by;
}

/// What an op of a unit is, tensors numbered within the unit: equal texts, equal layers.
class UnitText {
 public:
  UnitText(const Model& model) : model_(model) {}

  void add(const Op& op) {
    text_ += op.target;
    if (op.backward) text_ += "'";
    for (const Arg& arg : op.args) add(arg);
    for (const auto& [name, arg] : op.kwargs) {
      text_ += name;
      add(arg);
    }
    for (TensorId id : op.outputs)
      if (id)
        add(id);
      else
        text_ += "-";
    text_ += '\n';
  }
  const std::string& text() const { return text_; }

 private:
  void add(const Arg& arg) {
    if (arg.kind == Arg::kTensor) return add(arg.tensor);
    text_ += fmt::format("({}:{}:{}:{}", static_cast<int>(arg.kind), arg.integer, arg.number, arg.text);
    for (const Arg& item : arg.items) add(item);
    text_ += ')';
  }

  void add(TensorId id) {
    auto [known, fresh] = number_.try_emplace(id, number_.size());
    text_ += fmt::format("%{}", known->second);
    if (!fresh) return;
    const Tensor& tensor = model_[id];
    text_ += fmt::format("[{}|{}]{}r{}{}", fmt::join(tensor.shape, ","), fmt::join(tensor.strides, ","),
                         static_cast<int>(tensor.dtype), static_cast<int>(tensor.role), tensor.trainable);
  }

  const Model& model_;
  std::map<TensorId, size_t> number_;
  std::string text_;
};

std::vector<std::string> unit_texts(const Model& model, const Units& units) {
  std::vector<UnitText> texts(units.all.size(), UnitText(model));
  for (size_t i = 0; i < model.ops.size(); ++i) texts[units.of_op[i]].add(model.ops[i]);
  std::vector<std::string> out;
  for (size_t u = 0; u < texts.size(); ++u)
    out.push_back(units.all[u].module.empty() ? fmt::format("between {}", u) : texts[u].text());
  return out;
}

void for_tensors(Arg& arg, const std::function<void(TensorId&)>& visit) {
  if (arg.kind == Arg::kTensor) visit(arg.tensor);
  for (Arg& item : arg.items) for_tensors(item, visit);
}

void for_inputs(Op& op, const std::function<void(TensorId&)>& visit) {
  for (Arg& arg : op.args) for_tensors(arg, visit);
  for (auto& [name, arg] : op.kwargs) for_tensors(arg, visit);
}

/// Takes units kept + 1 .. last out of a step: what came out of `last` comes out of `kept`, and the gradient
/// that went into `last` goes into `kept`.
class Cutter {
 public:
  Cutter(const Model& model, const std::vector<int>& unit_of_op, int kept, int last)
      : model_(model), units_(unit_of_op), kept_(kept), last_(last), producer_(producers(model)) {}

  std::optional<Model> cut(std::vector<int>& unit_of_op) {
    pair_layers();
    std::vector<int> rest;
    Model out = model_;
    out.ops.clear();
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      if (gone(static_cast<int32_t>(i))) continue;
      out.ops.push_back(rewired(static_cast<int32_t>(i)));
      rest.push_back(units_[i] > last_ ? units_[i] - (last_ - kept_) : units_[i]);
    }
    if (!sound_ || !rename_results(out)) return std::nullopt;
    drop_unused(out);
    if (!check(out).empty()) return std::nullopt;
    unit_of_op = std::move(rest);
    return out;
  }

 private:
  bool gone(int32_t op) const { return units_[op] > kept_ && units_[op] <= last_; }
  bool made_in_gone(TensorId id) const { return producer_[id.value] >= 0 && gone(producer_[id.value]); }

  void pair_layers() {
    std::vector<int32_t> of_last;
    for (size_t i = 0; i < model_.ops.size(); ++i)
      if (units_[i] == last_) of_last.push_back(static_cast<int32_t>(i));
    size_t k = 0;
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      if (units_[i] != kept_) continue;
      const Op &a = model_.ops[i], &b = model_.ops[of_last[k]];
      twin_[static_cast<int32_t>(i)] = of_last[k++];
      if (!b.backward) end_of_forward_ = twin_[static_cast<int32_t>(i)];
      for (size_t o = 0; o < a.outputs.size(); ++o)
        if (a.outputs[o]) stands_in_[b.outputs[o]] = a.outputs[o];
    }
  }

  Op rewired(int32_t i) {
    Op op = model_.ops[i];
    std::vector<TensorId> twins;
    if (auto twin = twin_.find(i); twin != twin_.end()) twins = inputs_of(model_.ops[twin->second]);
    size_t at = 0;
    for_inputs(op, [&](TensorId& id) {
      if (!twins.empty()) {
        TensorId other = twins[at++];
        bool later = producer_[other.value] > end_of_forward_ && !gone(producer_[other.value]);
        if (later) id = other;
      }
      if (!made_in_gone(id)) return;
      auto found = stands_in_.find(id);
      if (found == stands_in_.end())
        sound_ = false;
      else
        id = found->second;
    });
    return op;
  }

  // Parameters that nothing reads any more go with their gradients.
  bool rename_results(Model& out) {
    std::vector<bool> read(out.tensors.size());
    for (const Op& op : out.ops)
      for (TensorId id : inputs_of(op)) read[id.value] = true;
    out.gradients.clear();
    for (auto [parameter, gradient] : model_.gradients) {
      if (!read[parameter.value]) continue;
      if (made_in_gone(gradient)) return false;
      out.gradients.emplace_back(parameter, gradient);
    }
    out.buffers.clear();
    for (auto [buffer, value] : model_.buffers)
      if (!made_in_gone(value)) out.buffers.emplace_back(buffer, value);
    return !made_in_gone(out.loss);
  }

  static void drop_unused(Model& out) {
    std::vector<int32_t> place(out.tensors.size(), -1);
    auto use = [&](TensorId id) {
      if (id) place[id.value] = 0;
    };
    for (const Op& op : out.ops) {
      for (TensorId id : inputs_of(op)) use(id);
      for (TensorId id : op.outputs) use(id);
    }
    for (auto [buffer, value] : out.buffers) use(buffer);
    std::vector<Tensor> tensors;
    for (size_t t = 0; t < out.tensors.size(); ++t) {
      if (place[t] < 0) continue;
      place[t] = static_cast<int32_t>(tensors.size());
      tensors.push_back(out.tensors[t]);
    }
    out.tensors = std::move(tensors);
    auto move = [&](TensorId& id) {
      if (id) id = TensorId{place[id.value]};
    };
    for (Op& op : out.ops) {
      for_inputs(op, move);
      for (TensorId& id : op.outputs) move(id);
    }
    move(out.loss);
    move(out.seed);
    for (auto& [parameter, gradient] : out.gradients) move(parameter), move(gradient);
    for (auto& [buffer, value] : out.buffers) move(buffer), move(value);
  }

  const Model& model_;
  const std::vector<int>& units_;
  int kept_, last_;
  std::vector<int32_t> producer_;
  std::map<int32_t, int32_t> twin_;         // ops of `kept`: that of `last`
  std::map<TensorId, TensorId> stands_in_;  // outputs of `last`: that of `kept`
  int32_t end_of_forward_ = -1;             // of `last`
  bool sound_ = true;
};

}  // namespace

Shrunk shrink(const Model& model) {
  Shrunk out{.model = model, .units = find_units(model), .stands_for = {}};
  std::vector<std::string> texts = unit_texts(model, out.units);
  std::vector<int> unit_of_op = out.units.of_op;
  std::vector<int> kept;  // by unit of the whole step: where it is now
  int place = 0;
  for (size_t first = 0; first < texts.size();) {
    size_t end = first + 1;
    while (end < texts.size() && texts[end] == texts[first]) ++end;
    size_t count = end - first;
    bool cut = false;
    if (count > kKept && out.units.in_line) {
      int last_kept = place + static_cast<int>(kKept) - 1;
      if (auto shorter =
              Cutter(out.model, unit_of_op, last_kept, place + static_cast<int>(count) - 1).cut(unit_of_op)) {
        out.model = std::move(*shorter);
        cut = true;
      }
    }
    for (size_t u = 0; u < count; ++u)
      kept.push_back(place + static_cast<int>(cut ? std::min(u, kKept - 1) : u));
    place = kept.back() + 1;
    first = end;
  }
  out.stands_for = std::move(kept);
  // Fewer layers may look like other units (a list of two blocks inside a block): then the step stays whole.
  if (find_units(out.model).all.size() != static_cast<size_t>(place)) {
    out.model = model;
    std::iota(out.stands_for.begin(), out.stands_for.end(), 0);
  }
  return out;
}

}  // namespace partita::estimate
