#include "estimate/units.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "plan/recipes/cut.h"
#include "plan/recipes/repeated_modules.h"

namespace partita::estimate {
namespace {

/// The numbered modules that recipes recompute one by one.
std::map<std::string, int, std::less<>> modules_of(const Model& model) {
  std::map<std::string, int, std::less<>> modules;
  for (const std::string& module : repeated_modules(model))
    modules.emplace(module, static_cast<int>(modules.size()));
  return modules;
}

/// Index of the module that a path lies in; -1: in none.
int module_at(const std::map<std::string, int, std::less<>>& modules, std::string_view path) {
  for (size_t end = 0; end < path.size();) {
    end = std::min(path.find('.', end + 1), path.size());
    if (auto found = modules.find(path.substr(0, end)); found != modules.end()) return found->second;
  }
  return -1;
}

std::string_view forward_name(std::string_view name) { return name.substr(0, name.find(".grad.")); }

class UnitFinder {
 public:
  explicit UnitFinder(const Model& model) : model_(model), modules_(modules_of(model)) {}

  Units find() {
    units_.of_op.assign(model_.ops.size(), -1);
    for (OpId op : line_ops(model_)) place_line_op(op.value);
    if (units_.all.empty()) units_.all.emplace_back();
    place_gradients();
    place_others();
    return std::move(units_);
  }

 private:
  void place_line_op(int32_t op) {
    int module = module_at(modules_, path_of(model_.ops[op].name));
    int last = static_cast<int>(units_.all.size()) - 1;
    if (module >= 0) {
      auto [known, fresh] = unit_of_module_.try_emplace(module, last + 1);
      if (fresh) {
        units_.all.push_back({std::string(module_name(module))});
        if (!between_.empty()) close_between(known->second);
      } else if (known->second != last) {
        units_.in_line = false;
      } else {
        // What stands between two ops of one module belongs to it.
        for (int32_t i : between_) units_.of_op[i] = last;
        between_.clear();
      }
      units_.of_op[op] = known->second;
      return;
    }
    between_.push_back(op);
    if (last < 0 || units_.all[last].module.empty()) {
      if (last < 0) units_.all.emplace_back(), last = 0;
      units_.of_op[op] = last;
      between_.clear();
    }
  }

  // Ops between two modules become a unit of their own, before the module that begins.
  void close_between(int& unit) {
    units_.all.insert(units_.all.end() - 1, Unit{});
    for (int32_t i : between_) units_.of_op[i] = unit;
    between_.clear();
    ++unit;
  }

  std::string_view module_name(int module) const {
    for (const auto& [name, index] : modules_)
      if (index == module) return name;
    return "";
  }

  void place_gradients() {
    // After the last module.
    if (!between_.empty()) {
      units_.all.emplace_back();
      for (int32_t i : between_) units_.of_op[i] = static_cast<int>(units_.all.size()) - 1;
    }
    std::map<std::string_view, int> by_name;
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      const Op& op = model_.ops[i];
      if (units_.of_op[i] >= 0) {
        by_name[op.name] = units_.of_op[i];
        continue;
      }
      int module = module_at(modules_, path_of(op.name));
      if (auto known = unit_of_module_.find(module); known != unit_of_module_.end())
        units_.of_op[i] = known->second;
      else if (auto forward = by_name.find(forward_name(op.name)); op.backward && forward != by_name.end())
        units_.of_op[i] = forward->second;
    }
  }

  void place_others() {
    std::vector<int> reader(model_.tensors.size(), -1);
    for (size_t i = model_.ops.size(); i-- > 0;) {
      int& unit = units_.of_op[i];
      for (TensorId id : model_.ops[i].outputs)
        if (unit < 0 && id) unit = reader[id.value];
      if (unit < 0) unit = model_.ops[i].backward ? 0 : static_cast<int>(units_.all.size()) - 1;
      for (TensorId id : inputs_of(model_.ops[i])) reader[id.value] = unit;
    }
  }

  const Model& model_;
  std::map<std::string, int, std::less<>> modules_;
  std::map<int, int> unit_of_module_;
  std::vector<int32_t> between_;  // ops of the line since the last module
  Units units_;
};

}  // namespace

std::string_view path_of(std::string_view op_name) {
  size_t slash = op_name.find('/');
  return slash == op_name.npos ? std::string_view() : op_name.substr(0, slash);
}

Units find_units(const Model& model) { return UnitFinder(model).find(); }

}  // namespace partita::estimate
