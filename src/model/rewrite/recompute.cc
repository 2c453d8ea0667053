#include "model/rewrite/recompute.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "model/row.h"

namespace partita::model {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
}

std::string_view module_of(const Op& op) { return std::string_view(op.name).substr(0, op.name.find('/')); }

/// Lengths of the prefixes of a path that end in a number: 15 for "transformer.h.3.attn".
std::vector<size_t> numbered_prefixes(std::string_view path) {
  std::vector<size_t> ends;
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    if (is_number(path.substr(begin, end - begin))) ends.push_back(end);
    begin = end + 1;
  }
  return ends;
}

std::string_view without_number(std::string_view prefix) { return prefix.substr(0, prefix.rfind('.') + 1); }

std::vector<int32_t> layer_groups(const Model& model) {
  std::map<std::string_view, std::set<std::string_view>> siblings;  // list -> its numbered modules
  for (const Op& op : model.ops)
    for (size_t end : numbered_prefixes(module_of(op))) {
      std::string_view prefix = module_of(op).substr(0, end);
      siblings[without_number(prefix)].insert(prefix);
    }
  std::map<std::string_view, int32_t> number;
  std::vector<int32_t> groups(model.ops.size(), -1);
  for (size_t i = 0; i < model.ops.size(); ++i) {
    if (model.ops[i].backward) continue;
    for (size_t end : numbered_prefixes(module_of(model.ops[i]))) {
      std::string_view prefix = module_of(model.ops[i]).substr(0, end);
      if (siblings[without_number(prefix)].size() < 2) continue;
      groups[i] = number.try_emplace(prefix, static_cast<int32_t>(number.size())).first->second;
      break;
    }
  }
  return groups;
}

bool is_softmax(const Op& op) {
  return op.target == "aten._softmax.default" || op.target == "aten._safe_softmax.default";
}

/// Grows a group from a softmax, within its module: from the product before it to the one after it.
class AttentionGroups {
 public:
  explicit AttentionGroups(const Model& model) : model_(model), readers_(model.tensors.size()) {
    maker_.assign(model.tensors.size(), -1);
    groups_.assign(model.ops.size(), -1);
    for (size_t i = 0; i < model.ops.size(); ++i) {
      if (model.ops[i].backward) continue;
      for (TensorId id : inputs_of(model.ops[i])) readers_[id.value].push_back(static_cast<int32_t>(i));
      for (TensorId id : model.ops[i].outputs)
        if (id) maker_[id.value] = static_cast<int32_t>(i);
    }
  }

  std::vector<int32_t> find() {
    for (size_t i = 0; i < model_.ops.size(); ++i)
      if (is_softmax(model_.ops[i]) && !model_.ops[i].backward) {
        take_back(static_cast<int32_t>(i), static_cast<int32_t>(i));
        take_on(static_cast<int32_t>(i), static_cast<int32_t>(i));
        ++next_;
      }
    return std::move(groups_);
  }

 private:
  bool inside(int32_t op, int32_t softmax) const {
    std::string_view path = module_of(model_.ops[op]), around = module_of(model_.ops[softmax]);
    return path.starts_with(around) && (path.size() == around.size() || path[around.size()] == '.');
  }

  void take_back(int32_t op, int32_t softmax) {
    groups_[op] = next_;
    if (is_batched_product(model_.ops[op])) return;
    for (TensorId id : inputs_of(model_.ops[op])) {
      int32_t by = maker_[id.value];
      if (by < 0 || groups_[by] >= 0 || !inside(by, softmax)) continue;
      if (!is_product(model_.ops[by]) || is_batched_product(model_.ops[by])) take_back(by, softmax);
    }
  }

  // The product with the values belongs to the group, so that what it reads need not be kept.
  void take_on(int32_t op, int32_t softmax) {
    groups_[op] = next_;
    if (is_product(model_.ops[op])) return;
    for (TensorId id : model_.ops[op].outputs) {
      if (!id) continue;
      for (int32_t by : readers_[id.value])
        if (groups_[by] < 0 && inside(by, softmax)) {
          take_on(by, softmax);
          if (!is_product(model_.ops[by])) take_back(by, softmax);  // a dropout mask is made beside the path
        }
    }
  }

  const Model& model_;
  std::vector<std::vector<int32_t>> readers_;  // by tensor: forward ops
  std::vector<int32_t> maker_, groups_;
  int32_t next_ = 0;
};

/// Writes the ops anew, copies where backward needs what is not kept.
class Replay {
 public:
  Replay(const Model& model, const std::vector<int32_t>& groups)
      : model_(model),
        groups_(groups),
        out_(model),
        maker_(model.tensors.size(), -1),
        kept_(model.tensors.size(), false),
        again_(model.tensors.size()) {
    out_.ops.clear();
    for (size_t i = 0; i < model.ops.size(); ++i) note(model.ops[i], static_cast<int32_t>(i));
    for (const auto& [buffer, value] : model.buffers) kept_[value.value] = true;
  }

  Model write() {
    for (const Op& op : model_.ops) {
      Op written = op;
      if (op.backward) redirect(written);
      out_.ops.push_back(std::move(written));
    }
    return std::move(out_);
  }

 private:
  /// What another group, or none, reads in forward is kept anyway.
  void note(const Op& op, int32_t index) {
    if (op.backward) return;
    for (TensorId id : inputs_of(op)) {
      int32_t by = maker_[id.value];
      if (by >= 0 && groups_[by] != groups_[index]) kept_[id.value] = true;
    }
    for (TensorId id : op.outputs)
      if (id) maker_[id.value] = index;
  }

  bool replayed(TensorId id) const {
    int32_t by = maker_[id.value];
    return by >= 0 && groups_[by] >= 0 && !kept_[id.value];
  }

  void redirect(Arg& arg) {
    if (arg.kind == Arg::kTensor) arg.tensor = value_of(arg.tensor);
    for (Arg& item : arg.items) redirect(item);
  }
  void redirect(Op& op) {
    for (Arg& arg : op.args) redirect(arg);
    for (auto& [name, arg] : op.kwargs) redirect(arg);
  }

  TensorId value_of(TensorId id) {
    if (!replayed(id)) return id;
    if (!again_[id.value]) compute_again(maker_[id.value]);
    return again_[id.value];
  }

  void compute_again(int32_t index) {
    Op op = model_.ops[index];
    redirect(op);
    op.name += ".again";
    op.backward = true;
    for (TensorId& id : op.outputs) {
      if (!id) continue;
      Tensor copy = model_[id];
      copy.name += ".again";
      again_[id.value] = TensorId{static_cast<int32_t>(out_.tensors.size())};
      out_.tensors.push_back(std::move(copy));
      id = again_[id.value];
    }
    out_.ops.push_back(std::move(op));
  }

  const Model& model_;
  const std::vector<int32_t>& groups_;
  Model out_;
  std::vector<int32_t> maker_;   // by tensor: the forward op
  std::vector<bool> kept_;       // by tensor
  std::vector<TensorId> again_;  // by tensor: its copy
};

}  // namespace

Recompute parse_recompute(std::string_view name, std::string_view where) {
  const std::vector<std::string> known = {"none", "selective", "full"};
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i] == name) return static_cast<Recompute>(i);
  input_error("{}: unknown \"{}\"; known are none, selective, full{}", where, name,
              did_you_mean(name, known));
}

std::vector<int32_t> recompute_groups(const Model& model, Recompute recompute) {
  if (recompute == Recompute::kFull) return layer_groups(model);
  if (recompute == Recompute::kSelective) return AttentionGroups(model).find();
  return std::vector<int32_t>(model.ops.size(), -1);
}

Model recompute(const Model& model, const std::vector<int32_t>& groups) {
  return Replay(model, groups).write();
}

}  // namespace partita::model
