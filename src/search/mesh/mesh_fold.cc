#include "search/mesh/mesh_fold.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "plan/form.h"

namespace partita::search {
namespace {

class Folder {
 public:
  explicit Folder(const Model& model) { out_.shrunk = shrink(model); }

  bool fold() {
    out_.model = in_form(out_.shrunk.model, Form::kUnpacked);
    Units units = find_units(out_.model);
    int kept = *std::max_element(out_.shrunk.stands_for.begin(), out_.shrunk.stands_for.end()) + 1;
    if (static_cast<int>(units.all.size()) != kept) return false;
    out_.unit_of_op = units.of_op;
    std::vector<int64_t> copies(kept);
    for (int unit : out_.shrunk.stands_for) ++copies[unit];
    for (int unit : units.of_op) out_.copies.push_back(copies[unit]);
    read_plainly();
    for (int unit = 1; unit < kept; ++unit)
      if (copies[unit] > 1 && !tie(unit - 1, unit, copies[unit])) return false;
    out_.folded = true;
    return true;
  }

  /// Ops of the whole step, layer by layer like those of the folded one.
  bool match(const Model& model) {
    out_.whole = in_form(model, Form::kUnpacked);
    Units units = find_units(out_.whole);
    if (units.all.size() != out_.shrunk.stands_for.size()) return false;
    std::vector<std::vector<int32_t>> ops(units.all.size());
    for (size_t i = 0; i < units.of_op.size(); ++i) ops[units.of_op[i]].push_back(static_cast<int32_t>(i));
    out_.like.assign(out_.whole.ops.size(), -1);
    for (size_t u = 0; u < ops.size(); ++u) {
      std::vector<int32_t> folded = ops_of(out_.shrunk.stands_for[u]);
      if (folded.size() != ops[u].size()) return false;
      for (size_t k = 0; k < folded.size(); ++k) {
        if (out_.whole.ops[ops[u][k]].target != out_.model.ops[folded[k]].target) return false;
        out_.like[ops[u][k]] = folded[k];
      }
    }
    return true;
  }

  void take_whole(const Model& model) {
    out_ = {.model = in_form(model, Form::kUnpacked)};
    out_.shrunk = {.model = model, .units = find_units(model), .stands_for = {}};
    out_.copies.assign(out_.model.ops.size(), 1);
    out_.unit_of_op.assign(out_.model.ops.size(), 0);
    out_.whole = out_.model;
    out_.like.resize(out_.model.ops.size());
    std::iota(out_.like.begin(), out_.like.end(), 0);
    read_plainly();
  }

  FoldedStep result() { return std::move(out_); }

 private:
  /// Every copy of an op reads what the op reads, every copy makes what it makes.
  void read_plainly() {
    out_.reads.clear();
    out_.makes.assign(out_.model.tensors.size(), {});
    for (size_t i = 0; i < out_.model.ops.size(); ++i) {
      const Op& op = out_.model.ops[i];
      out_.reads.emplace_back();
      for (TensorId id : inputs_of(op)) out_.reads.back().push_back({{id, out_.copies[i]}});
      for (size_t o = 0; o < op.outputs.size(); ++o)
        if (op.outputs[o])
          out_.makes[op.outputs[o].value] = {{OpId{static_cast<int32_t>(i)}, o, out_.copies[i]}};
    }
  }

  std::vector<int32_t> ops_of(int unit) const {
    std::vector<int32_t> ops;
    for (size_t i = 0; i < out_.unit_of_op.size(); ++i)
      if (out_.unit_of_op[i] == unit) ops.push_back(static_cast<int32_t>(i));
    return ops;
  }

  int unit_of(TensorId id) const {
    const std::vector<FoldedMake>& makes = out_.makes[id.value];
    return makes.empty() ? -1 : out_.unit_of_op[makes[0].op.value];
  }

  /// Copies of layer `b` read from each other what `b` reads of `a`, and in backward what `a` reads of `b`.
  bool tie(int a, int b, int64_t copies) {
    std::vector<int32_t> first = ops_of(a), second = ops_of(b);
    if (first.size() != second.size()) return false;
    std::map<TensorId, TensorId> twin;  // of what `a` makes: that of `b`
    for (size_t i = 0; i < first.size(); ++i) {
      const Op &one = out_.model.ops[first[i]], &other = out_.model.ops[second[i]];
      if (one.target != other.target || one.outputs.size() != other.outputs.size() ||
          inputs_of(one).size() != inputs_of(other).size())
        return false;
      for (size_t o = 0; o < one.outputs.size(); ++o)
        if (one.outputs[o]) twin[one.outputs[o]] = other.outputs[o];
    }
    std::map<TensorId, TensorId> inner;  // of what leaves `b` towards the next layer: that of `a`
    for (int32_t op : second)
      for (TensorId id : inputs_of(out_.model.ops[op]))
        if (unit_of(id) == a) inner[twin.at(id)] = id;
    for (const auto& [last, like] : inner) {
      OpId maker = out_.makes[last.value][0].op;
      size_t output = out_.makes[last.value][0].output;
      out_.makes[last.value][0].copies = 1;
      out_.makes[like.value].push_back({maker, output, copies - 1});
    }
    for (size_t i = 0; i < first.size(); ++i)
      if (!tie_inputs(first[i], second[i], a, b, copies, inner)) return false;
    return true;
  }

  bool tie_inputs(int32_t one, int32_t other, int a, int b, int64_t copies,
                  const std::map<TensorId, TensorId>& inner) {
    std::vector<TensorId> mine = inputs_of(out_.model.ops[one]), its = inputs_of(out_.model.ops[other]);
    for (size_t k = 0; k < mine.size(); ++k) {
      std::vector<FoldedRead>& reads = out_.reads[other][k];
      bool parameter = out_.model[its[k]].role != Role::kValue;
      if (unit_of(mine[k]) == b && !parameter)
        reads = {{its[k], 1}, {mine[k], copies - 1}};
      else if (auto like = inner.find(its[k]); like != inner.end())
        reads = {{its[k], 1}, {like->second, copies - 1}};
      else if (!parameter && mine[k] != its[k] && unit_of(its[k]) != b && unit_of(its[k]) != a)
        return false;
    }
    return true;
  }

  FoldedStep out_;
};

}  // namespace

FoldedStep fold_step(const Model& model, bool free_layers) {
  Folder folder(model);
  if (free_layers || !folder.fold() || !folder.match(model)) folder.take_whole(model);
  return folder.result();
}

}  // namespace partita::search
